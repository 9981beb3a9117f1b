import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  chownSync,
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { setTimeout } from "node:timers/promises"
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { archive, prompt } from "../../../../support/archives.ts"
import { currentProgram, run } from "../../../../support/service.ts"
import { makeTestDatabase } from "../../../../support/testDatabase.ts"

const isRoot = process.getuid?.() === 0
const nobody = 65_534

// The archive is larger than the buffer of a pipe, so that a write has to wait for the reader.
const original = archive({ prompts: [prompt({ current_content: "content ".repeat(40_000) })] })
const workspace = original.workspace.id

describe("export --out", { timeout: 60_000 }, () => {
  const { env } = makeTestDatabase([original])
  let whole: string
  /** A directory of the current test. */
  let root: string
  const inRoot = (name: string) => join(root, name)

  beforeAll(async () => {
    const exported = await run(["export", "--workspace", workspace], env)
    expect(exported).toMatchObject({ code: 0, stderr: "" })
    whole = exported.stdout
    expect(whole.length).toBeGreaterThan(200_000)
  }, 60_000)
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "export-"))
    mkdirSync(inRoot("tmp"))
  })
  afterEach(() => rmSync(root, { recursive: true }))

  const exportArgs = (out: string, id: string = workspace) => ["export", "--workspace", id, "--out", out]
  const exportTo = (out: string, id?: string) => run(exportArgs(out, id), { ...env, TMPDIR: inRoot("tmp") })
  const expectNoScratch = () => {
    const names = readdirSync(root, { recursive: true, encoding: "utf8" })
    expect(names.filter((name) => name.includes(".export-"))).toEqual([])
  }
  const expectedResult = (out: string) => ({
    code: 0,
    stdout: `Exported workspace ${workspace} to ${out}\n`,
    stderr: ""
  })

  it("export --out writes into a FIFO once the FIFO has a reader", async () => {
    const fifo = inRoot("fifo")
    execFileSync("mkfifo", [fifo])
    const exported = exportTo(fifo)
    await setTimeout(2_000)
    const reader = spawn("cat", [fifo], { stdio: ["ignore", "pipe", "inherit"] })
    expect(await text(reader.stdout)).toBe(whole)
    expect(await exported).toEqual(expectedResult(fifo))
    expect(lstatSync(fifo).isFIFO()).toBe(true)
    expectNoScratch()
  })

  it("export --out writes only the archive if the path is standard output", async () => {
    const link = inRoot("stdout")
    symlinkSync("/proc/self/fd/1", link)
    expect(await exportTo(link)).toEqual({ code: 0, stdout: whole, stderr: "" })
    const command = `"${process.execPath}" "${currentProgram}" ${exportArgs(link).join(" ")}`
    const options = { env: { PATH: process.env.PATH, ...env }, encoding: "utf8", maxBuffer: 2 ** 26 } as const
    expect(execFileSync("sh", ["-c", `${command} | cat`], options)).toBe(whole)
    const file = inRoot("redirected")
    execFileSync("sh", ["-c", `${command} > "${file}"`], options)
    expect(readFileSync(file, "utf8")).toBe(whole)
    expect(readlinkSync(link)).toBe("/proc/self/fd/1")
  })

  it("export --out replaces the target of a symbolic link and keeps the link", async () => {
    mkdirSync(inRoot("elsewhere"))
    const target = join(root, "elsewhere", "archive.json")
    writeFileSync(target, "old")
    symlinkSync("elsewhere/archive.json", inRoot("first"))
    symlinkSync("first", inRoot("second"))
    expect(await exportTo(inRoot("second"))).toEqual(expectedResult(inRoot("second")))
    expect(readlinkSync(inRoot("second"))).toBe("first")
    expect(readlinkSync(inRoot("first"))).toBe("elsewhere/archive.json")
    expect(readFileSync(target, "utf8")).toBe(whole)

    symlinkSync("loop", inRoot("loop"))
    expect((await exportTo(inRoot("loop"))).stderr).toMatch(/cannot write .*loop: ELOOP/)
    expectNoScratch()
  })

  it("export --out replaces a regular file atomically and keeps its mode and owner", async () => {
    const file = inRoot("archive.json")
    for (const mode of [0o640, 0o444, 0o777]) {
      rmSync(file, { force: true })
      writeFileSync(file, "old")
      chmodSync(file, mode)
      if (isRoot) chownSync(file, nobody, nobody)
      const { uid, gid } = statSync(file)
      const opened = openSync(file, "r")
      expect(await exportTo(file)).toEqual(expectedResult(file))
      // An open file descriptor still reads the old file.
      expect(readFileSync(opened, "utf8")).toBe("old")
      closeSync(opened)
      const replaced = statSync(file)
      expect({ mode: replaced.mode & 0o7777, uid: replaced.uid, gid: replaced.gid }).toEqual({
        mode,
        uid,
        gid
      })
      expect(readFileSync(file, "utf8")).toBe(whole)
    }
    expect(await exportTo(inRoot("new.json"))).toEqual(expectedResult(inRoot("new.json")))
    expect(statSync(inRoot("new.json")).mode & 0o7777).toBe(0o600)
    expectNoScratch()
  })

  it("export --out leaves the old file unchanged if the export fails", async () => {
    const file = inRoot("archive.json")
    writeFileSync(file, "old")
    const { ino, mtimeMs } = statSync(file)
    const missing = "00000000-0000-4000-8000-000000000000"
    expect(await exportTo(file, missing)).toMatchObject({ code: 1, stdout: "" })
    expect(await exportTo(root)).toEqual({
      code: 1,
      stdout: "",
      stderr: `prompt-retrieval: cannot write ${root}: it is a directory\n`
    })

    expect(statSync(file)).toMatchObject({ ino, mtimeMs })
    expect(readFileSync(file, "utf8")).toBe("old")
    expectNoScratch()
  })
})
