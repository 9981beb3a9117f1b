import { expect, it } from "vitest"
import { run } from "../support/service.ts"

const key = `key_live_${"0".repeat(64)}`
const request = (id: number, method: string, params: object = {}) =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`

it("mcp exits with 1 and says what is missing without PROMPT_RETRIEVAL_KEY", async () => {
  expect(await run(["mcp"], {})).toEqual({
    code: 1,
    stdout: "",
    stderr: "prompt-retrieval: PROMPT_RETRIEVAL_KEY is not set; it holds the API key to read with\n"
  })
})

it("mcp exits with 1 for a URL that is not valid, without repeating it", async () => {
  const { code, stdout, stderr } = await run(["mcp"], {
    PROMPT_RETRIEVAL_KEY: key,
    PROMPT_RETRIEVAL_URL: "http://ada:secret@localhost"
  })
  expect([code, stdout]).toEqual([1, ""])
  expect(stderr).toContain("baseUrl must be an http or https URL")
  expect(stderr).not.toContain("secret")
})

it("mcp responds with errors while the service is away, and exits with 0 at the end of stdin", async () => {
  // Nothing listens on port 9.
  const env = { PROMPT_RETRIEVAL_KEY: key, PROMPT_RETRIEVAL_URL: "http://127.0.0.1:9" }
  const input = request(1, "initialize", { protocolVersion: "2025-11-25" }) + request(2, "prompts/list")
  const { code, stdout } = await run(["mcp"], env, input)
  expect(code).toBe(0)
  const messages = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  expect(messages).toMatchObject([
    { id: 1, result: { protocolVersion: "2025-11-25" } },
    { id: 2, error: { code: -32603, data: { code: "SERVICE_UNAVAILABLE" } } }
  ])
  expect(stdout).not.toContain(key)
})
