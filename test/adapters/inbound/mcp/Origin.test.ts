import { expect, it } from "vitest"
import { isAllowedOrigin } from "../../../../src/adapters/inbound/mcp/Origin.ts"

it.each([
  [undefined, true],
  ["http://localhost", true],
  ["http://localhost:6274", true],
  ["https://127.0.0.1:1", true],
  ["http://[::1]:3000", true],
  ["https://prompts.example.com", true],
  ["http://prompts.example.com", false],
  ["https://prompts.example.com.evil.com", false],
  ["http://localhost.evil.com", false],
  ["http://evil.com/localhost", false],
  ["http://localhost@evil.com", false],
  ["http://127.0.0.1.evil.com", false],
  ["null", false],
  ["", false],
  ["file://localhost", false]
])("the origin %j is allowed: %j", (origin, isAllowed) => {
  expect(isAllowedOrigin(origin, "https://prompts.example.com")).toBe(isAllowed)
})

it("without a public URL, no origin but those of this machine is allowed", () => {
  expect(isAllowedOrigin("https://prompts.example.com", undefined)).toBe(false)
})
