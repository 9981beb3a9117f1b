import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { toDatabaseUrl } from "../../support/postgres.ts"
import { run } from "../../support/service.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const scratch = makeTestDirectory("usage-")

const env = { DATA_DIR: join(scratch, "never") }

// Commands.test.ts tests many other wrong command lines.
it("a wrong command line exits with 2 and one line on stderr, and opens no database", async () => {
  expect(await run(["nonsense"], env)).toEqual({
    code: 2,
    stdout: "",
    stderr: `prompt-retrieval: unknown command "nonsense"; see 'prompt-retrieval --help'\n`
  })
  expect(existsSync(env.DATA_DIR)).toBe(false)
})

it("a command exits with 1 and the reason of PostgreSQL if the database or the role of DATABASE_URL does not exist", async () => {
  for (const [url, reason] of [
    [toDatabaseUrl("nowhere"), 'database "nowhere" does not exist'],
    [toDatabaseUrl("postgres", "nobody"), 'role "nobody" does not exist']
  ] as const) {
    const stderr = `prompt-retrieval: PostgreSQL rejected the connection of DATABASE_URL: ${reason}\n`
    const result = await run(["workspaces", "list"], { DATABASE_URL: url })
    expect(result).toEqual({ code: 1, stdout: "", stderr })
  }
})

it("a command exits with 1 and prints the reason once if the database cannot be reached", async () => {
  const env = { DATABASE_URL: "postgres://postgres@127.0.0.1:9/none" }
  const stderr = "prompt-retrieval: the database cannot be reached: connect ECONNREFUSED 127.0.0.1:9\n"
  expect(await run(["workspaces", "list"], env)).toEqual({ code: 1, stdout: "", stderr })
})
