import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { archive, workspace } from "../../support/archives.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { makeFailure, runInProcess as run, runJson } from "../../support/services/commandLine.ts"
import { currentProgram, runProcess } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const scratch = makeTestDirectory("output-")

const [acme, free] = [workspace(), workspace({ tier: "free" })]
const database = makeTestDatabase([acme, free].map((workspace) => archive({ workspace })))
const env = { ...database.env, PROMPT_RETRIEVAL_WORKSPACE: acme.id }

/** Runs a command in a shell. `script` redirects stdout and executes `"$0" "$@"`. */
const runInShell = (script: string, ...args: ReadonlyArray<string>) =>
  runProcess("bash", ["-c", script, process.execPath, currentProgram, ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env }
  })
/** Runs a command whose stdout is a device without free space. */
const runOnFullDevice = (...args: ReadonlyArray<string>) => runInShell('exec "$0" "$@" > /dev/full', ...args)

const full = "cannot write to standard output: ENOSPC: no space left on device, write"

it.each([[["workspaces", "list"]], [["export"]], [["help"]], [["--version"]], [["completion", "bash"]]])(
  "the command %j exits with 1 if its output cannot be written",
  async (args) => {
    expect(await runOnFullDevice(...args)).toEqual(makeFailure(full))
  }
)

it('the command line exits with 2 if "serve --demo" is one argument', async () => {
  expect(await runInShell('"$0" "$@"', "serve --demo")).toMatchObject({ code: 2, stdout: "" })
})

it("a command exits with 1 if stdout is a file into which only a part of the output fits", async () => {
  const file = join(scratch, "listing")
  // `ulimit` limits the file to one block of 1,024 bytes, of which 1,000 bytes are in use. The trap makes Node ignore
  // the signal that a process gets at the limit.
  writeFileSync(file, "x".repeat(1_000))
  expect(await runInShell(`trap "" XFSZ; ulimit -f 1; exec "$0" "$@" >> "${file}"`, "help")).toEqual(
    makeFailure("cannot write to standard output: EFBIG: file too large, write")
  )
  expect(readFileSync(file, "utf8")).toHaveLength(1_024)
})

it("if keys issue or keys rotate cannot print the new key, the error says how to revoke this key and when the replaced key expires", async () => {
  const describeLost = (id: string) =>
    `${full}; key ${id} was issued and is lost: revoke it with 'prompt-retrieval keys revoke ${id}'`
  const failed = await runOnFullDevice("keys", "issue", "--user", "ada@example.com", "--name", "CI")
  const [lost] = await runJson(["keys", "list"], env)
  expect(failed).toEqual(makeFailure(describeLost(lost.id)))
  const notRotated = await runOnFullDevice("keys", "rotate", "CI")
  const keys: ReadonlyArray<Readonly<Record<string, string>>> = await runJson(["keys", "list"], env)
  const [replaced, added] = ["CI (replaced)", "CI"].map((name) => keys.find((key) => key.name === name)!)
  const end = `the replaced key ${replaced!.key} is now named "CI (replaced)" and ends at ${replaced!.expires_at}`
  expect(notRotated).toEqual(makeFailure(`${describeLost(added!.id!)}; ${end}`))
})

it("keys issue for a workspace without API access warns on stderr and prints the key", async () => {
  const issue = ["keys", "issue", "--user", "ada@example.com", "--workspace", free.id]
  expect(await run(issue, env)).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^key_live_[0-9a-f]{64}\n$/),
    stderr: expect.stringMatching(/^prompt-retrieval: warning: .*\nThis key is shown only once/)
  })
  const { stderr } = await run([...issue, "--json"], env)
  expect(JSON.parse(stderr).warning.message).toContain(`workspaces set ${free.id} --tier solo`)
})
