import { expect, it } from "vitest"
import { findSimilarNames } from "../../../src/runtime/config/SimilarNames.ts"
import { run } from "../../support/service.ts"

it.each([
  ["DATABASE_URI", "DATABASE_URL"],
  ["DATABSE_URL", "DATABASE_URL"],
  ["database_url", "DATABASE_URL"],
  ["PROT", "PORT"],
  ["PORTS", "PORT"],
  ["MPC", "MCP"],
  ["PROMPT_RETRIEVAL_WORKSPACES", "PROMPT_RETRIEVAL_WORKSPACE"]
])("findSimilarNames warns that %s resembles %s", (name, known) => {
  const message = `The environment variable ${name} is not used; did you mean ${known}?`
  expect(findSimilarNames({ [name]: "x" })).toEqual([message])
})

it("findSimilarNames does not warn about variables of other programs", () => {
  const names = ["HOME", "HOSTNAME", "POST", "TMP", "PATH", "DATABASE_NAME", "DATABASE_HOST", "REDIS_HOST"]
  const more = ["LOG_FILE", "XDG_DATA_DIRS", "OTEL_EXPORTER_OTLP_HEADERS", "PUBLIC_KEY", "METRICS_PATH"]
  const client = ["PROMPT_RETRIEVAL_URL", "PROMPT_RETRIEVAL_KEY"]
  expect(
    findSimilarNames(Object.fromEntries([...names, ...more, ...client].map((name) => [name, "x"])))
  ).toEqual([])
})

it("findSimilarNames does not warn if the variable that the name resembles is set", () => {
  expect(findSimilarNames({ DATABASE_URL: "x", DATABASE_URI: "x" })).toEqual([])
})

it("a command warns about a variable whose name resembles a variable that is not set", async () => {
  const { code, stderr } = await run(["check", "examples/prompts-as-files"], {
    DATABASE_URI: "postgres://db/x"
  })
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringMatching(
      /^\{"time":"[^"]+","level":"warn","msg":"The environment variable DATABASE_URI is not used; did you mean DATABASE_URL\?"\}\n$/
    )
  })
})
