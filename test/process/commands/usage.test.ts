import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { run } from "../../support/service.ts"

const scratch = mkdtempSync(join(tmpdir(), "usage-"))
afterAll(() => rmSync(scratch, { recursive: true }))

const unknownId = "00000000-0000-0000-0000-000000000000"
const env = { DATA_DIR: join(scratch, "never") }

const wrongUsages: ReadonlyArray<readonly [args: ReadonlyArray<string>, message: string]> = [
  [["import", scratch], `${scratch} is a directory: add --workspace ID or set PROMPT_RETRIEVAL_WORKSPACE`],
  [["workspaces", "set", unknownId], "nothing to set: give --tier, --billing or both"],
  [
    ["keys", "revoke", "Production"],
    "a key name requires a workspace: add --workspace ID or set PROMPT_RETRIEVAL_WORKSPACE"
  ],
  [["keys", "issue", "--workspace", "Acme"], "--user is required; see 'prompt-retrieval keys issue --help'"],
  [["nonsense"], `unknown command "nonsense"; see 'prompt-retrieval --help'`]
]

it.each(wrongUsages)(
  "%j exits with 2 and one line on stderr, and opens no database",
  async (args, message) => {
    expect(await run(args, env)).toEqual({ code: 2, stdout: "", stderr: `prompt-retrieval: ${message}\n` })
    expect(existsSync(env.DATA_DIR)).toBe(false)
  }
)

it("an invalid variable exits with 1, with --json in JSON", async () => {
  const message = "PORT must be a port, 0 to 65535"
  const args = ["workspaces", "list"]
  expect(await run(args, { ...env, PORT: "x" })).toEqual({
    code: 1,
    stdout: "",
    stderr: `prompt-retrieval: ${message}\n`
  })
  const { stderr } = await run([...args, "--json"], { ...env, PORT: "x" })
  expect(JSON.parse(stderr)).toEqual({ error: { message, exit_code: 1 } })
})

it("help of a command is printed on stdout and exits with 0", async () => {
  const help = await run(["help", "keys", "issue"], env)
  expect(help).toMatchObject({ code: 0, stderr: "" })
  expect(help.stdout).toContain("--workspace")
})
