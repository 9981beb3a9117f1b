import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { archive, prompt, sample, version, workspace } from "../../support/archives.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { makeFailure, makeSuccess, runInProcess as run, runJson } from "../../support/services/commandLine.ts"
import { currentProgram, runProcess } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const scratch = makeTestDirectory("imports-")
const { env, sql } = makeTestDatabase()

const makeRejection = (stderr: RegExp) => ({ code: 1, stdout: "", stderr: expect.stringMatching(stderr) })
const importText = (original: Archive) => runJson(["import", "-"], env, JSON.stringify(original))

it("import and export --update synchronize a directory with a workspace, and each command fails if it would undo an edit", async () => {
  const home = workspace()
  await importText(archive({ workspace: home }))
  const directory = join(scratch, home.id)
  cpSync("examples/prompts-as-files", directory, { recursive: true })
  const summary = join(directory, "prompts/summary.md")
  const edit = (path: string, from: string, to: string) =>
    writeFileSync(path, readFileSync(path, "utf8").replace(from, to))
  const load = ["import", directory, "--workspace", home.id]
  const update = ["export", "--workspace", home.id, "--format", "files", "--update", "--out", directory]

  expect(await run([...load, "--detailed-exitcode"], env)).toMatchObject({ code: 2, stderr: "" })
  const unchanged = makeSuccess(`Nothing changed in workspace ${home.id}`)
  expect(await run([...load, "--detailed-exitcode"], env)).toEqual(unchanged)
  expect(await runJson(update, env)).toMatchObject({ written: [], removed: [] })

  await sql("update prompts set current_content = 'Be brief' where title = 'Summary'")
  edit(summary, "{{text}}", "{{body}}")
  const rejected = makeRejection(
    /^prompt-retrieval: nothing was imported; .*\nprompts\/summary\.md: was edited\n/
  )
  expect(await run([...load, "--dry-run", "--detailed-exitcode"], env)).toEqual(rejected)
  const preview = await run([...load, "--dry-run", "--overwrite", "--detailed-exitcode"], env)
  expect(preview).toMatchObject({ code: 2, stderr: "" })
  for (const part of [
    "new version: prompt prompts/summary.md (Summary)\n@@ ",
    "\n-Be brief\n+Summarize in three sentences:\n",
    "\nThese changes can break applications:\nsummary: slots: +body\n\n1 change would be made"
  ])
    expect(preview.stdout).toContain(part)
  expect(await run(update, env)).toEqual(
    makeRejection(/^prompt-retrieval: nothing was written; .*\nprompts\/summary\.md\n/)
  )
  const edited = readFileSync(summary)
  expect(await run([...update, "--overwrite"], env)).toEqual(
    makeSuccess("written: prompts/summary.md", `1 file changed in ${directory}`)
  )
  expect(readFileSync(summary, "utf8")).toContain("\n---\nBe brief\n")
  // An export does not record the exported text, so an import of the earlier text still fails.
  writeFileSync(summary, edited)
  expect(await run(load, env)).toEqual(rejected)

  edit(join(directory, "prompts/Support/agent.md"), "tone: friendly", "tonee: friendly")
  const warnings = [
    "binds tonee, which is no slot of fragments/tone.md",
    "does not bind the slot {{tone}} of fragments/tone.md"
  ].map((message) => ({ path: "prompts/Support/agent.md", message }))
  expect(await run([...load, "--overwrite"], env)).toMatchObject({
    code: 0,
    stderr: warnings.map(({ path, message }) => `prompt-retrieval: warning: ${path}: ${message}\n`).join("")
  })
  expect(await runJson(load, env)).toMatchObject({ changes: [], warnings })

  rmSync(join(directory, "prompts"), { recursive: true })
  mkdirSync(join(directory, "prompts"))
  expect(await run(load, env)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/ has no prompts, so the import would archive all .*: add --allow-empty$/m)
  })
  expect(await run([...load, "--allow-empty"], env)).toMatchObject({ code: 0, stderr: "" })
})

it("import --detailed-exitcode of an archive exits with 2 if the import changed the workspace, and with 0 if nothing changed", async () => {
  const text = JSON.stringify(sample().archive)
  for (const [code, stdout, ...flags] of [
    [2, /^Would import .*: \d+ rows added, 0 changed, 0 removed\n$/, "--dry-run"],
    [2, /^Imported .*: \d+ rows added, 0 changed, 0 removed\n$/],
    [0, /^Nothing changed in workspace /]
  ] as const) {
    const result = await run(["import", "-", "--detailed-exitcode", ...flags], env, text)
    expect(result).toEqual({ code, stdout: expect.stringMatching(stdout), stderr: "" })
  }
})

it.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)(
  "an import changes nothing if %s interrupts it, and a second attempt succeeds",
  async (signal) => {
    const versions = () => Array.from({ length: 5 }, (_, index) => version(index + 1))
    const original = archive({
      prompts: Array.from({ length: 10_000 }, () => prompt({ versions: versions() }))
    })
    const file = join(scratch, `${original.workspace.id}.json`)
    writeFileSync(file, JSON.stringify(original))
    const child = spawn(process.execPath, [currentProgram, "import", file], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: "ignore"
    })
    const exit = once(child, "exit")
    const inside =
      "select from pg_stat_activity where datname = current_database() and query like '%insert into %' and pid <> pg_backend_pid()"
    await expect.poll(async () => (await sql(inside)).length, { timeout: 30_000, interval: 20 }).toBe(1)
    child.kill(signal)
    const [code] = await exit
    expect(code).toBe(signal === "SIGKILL" ? null : 130)
    const found = () => sql("select from workspaces where id = $1", [original.workspace.id])
    await expect.poll(found, { timeout: 20_000 }).toEqual([])
    await importText({ ...original, prompts: original.prompts.slice(0, 10) })
    expect(await found()).toHaveLength(1)
  }
)

const text = JSON.stringify(archive({ workspace: workspace({ name: "Ä" }) }))

it.each<readonly [string, string | Uint8Array]>([
  ["half an archive", text.slice(0, 100)],
  ["Latin-1", Buffer.from(text, "latin1")],
  ["an incomplete UTF-8 character", Buffer.from([...Buffer.from("{}"), 0xc3])]
])("import rejects a file that contains %s", async (_, content) => {
  const file = join(scratch, "invalid.json")
  writeFileSync(file, content)
  expect(await run(["import", file], env)).toEqual(
    makeRejection(
      /^prompt-retrieval: nothing was imported; .*\nthe archive: is not a JSON document in UTF-8: /
    )
  )
})

it("import accepts an archive that begins with a byte order mark", async () => {
  expect(await run(["import", "-"], env, `\ufeff${text}`)).toMatchObject({ code: 0, stderr: "" })
})

it("import stops reading a file or a pipe after 256 MiB, and names the limit and pg_dump", async () => {
  const failure = makeFailure("the archive is larger than 256 MiB; copy the database with pg_dump instead")
  const file = join(scratch, "large.json")
  writeFileSync(file, "")
  truncateSync(file, 256 * 1024 * 1024 + 1)
  expect(await run(["import", file], env)).toEqual(failure)
  // The pipe never ends.
  const args = ["-c", 'yes | "$0" "$1" import -', process.execPath, currentProgram]
  expect(await runProcess("sh", args, { env: { PATH: process.env.PATH, ...env } })).toEqual(failure)
})
