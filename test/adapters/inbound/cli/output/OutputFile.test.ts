import * as fs from "node:fs"
import { join } from "node:path"
import { afterEach, expect, it } from "vitest"
import { archive, prompt, toArchiveText } from "../../../../support/archives.ts"
import { makeTestDatabase } from "../../../../support/database/testDatabase.ts"
import { makeFailure, makeSuccess, runInProcess } from "../../../../support/services/commandLine.ts"
import { currentProgram, runProcess } from "../../../../support/services/startService.ts"
import { makeTestDirectory } from "../../../../support/testDirectory.ts"

const isRoot = process.getuid?.() === 0
const nobody = 65_534

// The archive is larger than the buffer of a pipe, so a write has to wait for the reader.
const original = archive({ prompts: [prompt({ current_content: "content ".repeat(40_000) })] })
const workspace = original.workspace.id
const whole = toArchiveText(original)

const { env } = makeTestDatabase([original])
const scratch = makeTestDirectory("export-")
afterEach(() => {
  expect(fs.readdirSync(scratch).filter((name) => name.includes(".export-"))).toEqual([])
})

const exportArgs = (out: string, id: string = workspace) => ["export", "--workspace", id, "--out", out]
const exportTo = (out: string, id?: string) => runInProcess(exportArgs(out, id), env)
const expectedResult = (out: string) => makeSuccess(`Exported workspace ${workspace} to ${out}`)

it.each([
  ["a socket", ""],
  ["a pipe", "| cat"],
  ["a file", "> redirected && cat redirected"]
])("export --out /dev/stdout writes only the archive if standard output is %s", async (_, redirection) => {
  const command = `"${process.execPath}" "${currentProgram}" ${exportArgs("/dev/stdout").join(" ")} ${redirection}`
  const options = { cwd: scratch, env: { PATH: process.env.PATH, ...env } }
  expect(await runProcess("sh", ["-c", command], options)).toEqual({ code: 0, stdout: whole, stderr: "" })
})

it("export --out writes to the target of a symbolic link, and only the owner can read a new file", async () => {
  const [link, target] = [join(scratch, "link"), join(scratch, "target.json")]
  fs.symlinkSync("target.json", link)
  expect(await exportTo(target)).toEqual(expectedResult(target))
  expect(fs.statSync(target).mode & 0o7777).toBe(0o600)
  fs.writeFileSync(target, "old")
  expect(await exportTo(link)).toEqual(expectedResult(link))
  expect(fs.readlinkSync(link)).toBe("target.json")
  expect(fs.readFileSync(target, "utf8")).toBe(whole)
})

it.each([0o640, 0o444, 0o777])(
  "export --out replaces a regular file atomically and keeps its mode %i and its owner",
  async (mode) => {
    const file = join(scratch, `${mode}.json`)
    fs.writeFileSync(file, "old")
    fs.chmodSync(file, mode)
    if (isRoot) fs.chownSync(file, nobody, nobody)
    const { uid, gid, mode: fileMode } = fs.statSync(file)
    const opened = fs.openSync(file, "r")
    expect(await exportTo(file)).toEqual(expectedResult(file))
    // A file descriptor that was opened before the export still reads the old file.
    expect(fs.readFileSync(opened, "utf8")).toBe("old")
    fs.closeSync(opened)
    expect(fs.statSync(file)).toMatchObject({ uid, gid, mode: fileMode })
    expect(fs.readFileSync(file, "utf8")).toBe(whole)
  }
)

it("export --out leaves the old file unchanged if the export fails", async () => {
  const file = join(scratch, "failed.json")
  fs.writeFileSync(file, "old")
  const { ino, mtimeMs } = fs.statSync(file)
  const missing = "00000000-0000-4000-8000-000000000000"
  expect(await exportTo(file, missing)).toMatchObject({ code: 1, stdout: "" })
  expect(fs.statSync(file)).toMatchObject({ ino, mtimeMs })
  expect(await exportTo(scratch)).toEqual(makeFailure(`cannot write ${scratch}: it is a directory`))
})
