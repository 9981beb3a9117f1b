import { assert, it } from "@effect/vitest"
import { isAllowedOrigin } from "../../../../../src/adapters/inbound/http/MountedEndpoint.ts"

it.each<[string | undefined, boolean]>([
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
])(
  "with the public URL https://prompts.example.com, isAllowedOrigin returns for the origin %j: %j",
  (origin, isAllowed) => {
    assert.strictEqual(isAllowedOrigin(origin, "https://prompts.example.com"), isAllowed)
  }
)

it("without a public URL, isAllowedOrigin rejects the origins of other machines", () => {
  assert.isFalse(isAllowedOrigin("https://prompts.example.com", undefined))
})
