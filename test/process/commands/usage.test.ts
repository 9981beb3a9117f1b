import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { run } from "../../support/service.ts"

const scratch = mkdtempSync(join(tmpdir(), "usage-"))
afterAll(() => rmSync(scratch, { recursive: true }))

const env = { DATA_DIR: join(scratch, "never") }

// Commands.test.ts has every kind of wrong usage.
it("wrong usage exits with 2 and one line on stderr, and opens no database", async () => {
  expect(await run(["nonsense"], env)).toEqual({
    code: 2,
    stdout: "",
    stderr: `prompt-retrieval: unknown command "nonsense"; see 'prompt-retrieval --help'\n`
  })
  expect(existsSync(env.DATA_DIR)).toBe(false)
})

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
