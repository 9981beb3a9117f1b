import { spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { describe, expect, it } from "vitest"
import { archive, workspace } from "../../support/archives.ts"
import { currentProgram, run } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const scratch = makeTestDirectory("output-")

describe("output that cannot be written is an error", { timeout: 60_000 }, () => {
  const acme = workspace({ name: "Acme", tier: "free" })
  const database = makeTestDatabase([archive({ workspace: acme })])
  const env = { ...database.env, PROMPT_RETRIEVAL_WORKSPACE: "Acme" }

  /** Runs a command whose stdout is a device without free space. */
  const runOnFullDevice = async (...args: ReadonlyArray<string>) => {
    const device = openSync("/dev/full", "w")
    const child = spawn(process.execPath, [currentProgram, ...args], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: ["ignore", device, "pipe"]
    })
    closeSync(device)
    const exited = once(child, "close")
    const stderr = await text(child.stderr!)
    const [code] = await exited
    return { code, stderr }
  }

  const full = "cannot write to standard output: ENOSPC: no space left on device, write"

  it.each([
    [["workspaces", "list"], `prompt-retrieval: ${full}\n`],
    [["workspaces", "list", "--json"], `${JSON.stringify({ error: { message: full, exit_code: 1 } })}\n`],
    [["export"], `prompt-retrieval: ${full}\n`],
    [["help"], `prompt-retrieval: ${full}\n`],
    [["--version"], `prompt-retrieval: ${full}\n`],
    [["completion", "bash"], `prompt-retrieval: ${full}\n`]
  ])("the command %j exits with 1 if its output cannot be written", async (args, stderr) => {
    expect(await runOnFullDevice(...args)).toEqual({ code: 1, stderr })
  })

  it("a command exits with 1 if stdout is a file into which only a part of the output fits", async () => {
    const file = join(scratch, "listing")
    // The file may have one block of 1,024 bytes, and 1,000 bytes are in use. The trap makes Node ignore the signal
    // that a process gets at the limit.
    writeFileSync(file, "x".repeat(1_000))
    const limited = `trap "" XFSZ; ulimit -f 1; exec "$0" "$@" >> "$FILE"`
    const child = spawn("bash", ["-c", limited, process.execPath, currentProgram, "help"], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, FILE: file },
      stdio: ["ignore", "ignore", "pipe"]
    })
    const exited = once(child, "close")
    const stderr = await text(child.stderr!)
    expect({ code: (await exited)[0], stderr }).toEqual({
      code: 1,
      stderr: "prompt-retrieval: cannot write to standard output: EFBIG: file too large, write\n"
    })
    expect(readFileSync(file, "utf8")).toHaveLength(1_024)
  })

  it("if keys issue or keys rotate cannot print the key, the error says how to revoke it and when a replaced key ends", async () => {
    // biome-ignore lint/suspicious/noExplicitAny: the value depends on the command
    const listKeys = async (): Promise<ReadonlyArray<any>> =>
      JSON.parse((await run(["keys", "list", "--json"], env)).stdout)
    const describeLost = (id: string) =>
      `prompt-retrieval: ${full}; key ${id} was issued and is lost: revoke it with 'prompt-retrieval keys revoke ${id}'`
    expect(await run(["workspaces", "set", "Acme", "--tier", "solo"], env)).toMatchObject({ code: 0 })
    const issue = ["keys", "issue", "--user", "ada@example.com", "--name", "CI"]
    const failed = await runOnFullDevice(...issue)
    const [lost] = await listKeys()
    expect(failed).toEqual({ code: 1, stderr: `${describeLost(lost.id)}\n` })
    const notRotated = await runOnFullDevice("keys", "rotate", "CI")
    const keys = await listKeys()
    const replaced = keys.find(({ id }) => id === lost.id)
    const { id } = keys.find(({ name }) => name === "CI")
    expect(notRotated).toEqual({
      code: 1,
      stderr: `${describeLost(id)}; the replaced key ${replaced.key} is now named "CI (replaced)" and ends at ${replaced.expires_at}\n`
    })
  })

  it("keys issue for a workspace without API access warns on stderr and prints the key", async () => {
    expect(await run(["workspaces", "set", "Acme", "--tier", "free"], env)).toMatchObject({ code: 0 })
    const message = `tier free has no API access, so requests with this key get 403; change the tier with 'prompt-retrieval workspaces set ${acme.id} --tier solo'`
    const issue = ["keys", "issue", "--user", "ada@example.com"]
    expect(await run(issue, env)).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^key_live_[0-9a-f]{64}\n$/),
      stderr: expect.stringMatching(/^prompt-retrieval: warning: .*\nThis key is shown only once/)
    })
    const { code, stderr } = await run([...issue, "--json"], env)
    expect({ code, warning: JSON.parse(stderr) }).toEqual({ code: 0, warning: { warning: { message } } })
  })
})
