import { expect, it } from "vitest"
import { toDatabaseUrl } from "../../support/postgres.ts"
import { run } from "../../support/service.ts"
import { makeFailure } from "../../support/services/commandLine.ts"

it.each([
  [
    toDatabaseUrl("nowhere"),
    'PostgreSQL rejected the connection of DATABASE_URL: database "nowhere" does not exist'
  ],
  ["postgres://postgres@127.0.0.1:9/none", "the database cannot be reached: connect ECONNREFUSED 127.0.0.1:9"]
])("a command exits with 1 and prints once why the database at %s is unavailable", async (url, reason) => {
  expect(await run(["workspaces", "list"], { DATABASE_URL: url })).toEqual(makeFailure(reason))
})
