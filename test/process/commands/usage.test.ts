import { expect, it } from "vitest"
import { toDatabaseUrl } from "../../support/postgres.ts"
import { run } from "../../support/service.ts"

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
