import { expect, it } from "vitest"
import { findSimilarNames } from "../../../src/runtime/config/SimilarNames.ts"
import { run } from "../../support/services/startService.ts"

it.each([
  ["DATABASE_URI", "DATABASE_URL"],
  ["DATABSE_URL", "DATABASE_URL"],
  ["database_url", "DATABASE_URL"],
  ["PROT", "PORT"],
  ["PORTS", "PORT"],
  ["MPC", "MCP"]
])("findSimilarNames warns that %s resembles %s, unless both variables are set", (name, known) => {
  const message = `The environment variable ${name} is not used; did you mean ${known}?`
  expect(findSimilarNames({ [name]: "x" })).toEqual([message])
  expect(findSimilarNames({ [name]: "x", [known]: "x" })).toEqual([])
})

it("findSimilarNames does not warn about variables of other programs", () => {
  const names = ["HOME", "HOSTNAME", "POST", "TMP", "PATH", "DATABASE_NAME", "DATABASE_HOST", "REDIS_HOST"]
  const more = ["LOG_FILE", "XDG_DATA_DIRS", "OTEL_EXPORTER_OTLP_HEADERS", "PUBLIC_KEY", "METRICS_PATH"]
  const client = ["PROMPT_RETRIEVAL_URL", "PROMPT_RETRIEVAL_KEY"]
  const env = Object.fromEntries([...names, ...more, ...client].map((name) => [name, "x"]))
  expect(findSimilarNames(env)).toEqual([])
})

it("a command logs a warning if an environment variable resembles a variable of the program", async () => {
  const { code, stderr } = await run(["check", "examples/prompts-as-files"], { DATABASE_URI: "x" })
  expect(code).toBe(0)
  expect(stderr).toContain('"level":"warn","msg":"The environment variable DATABASE_URI is not used')
})
