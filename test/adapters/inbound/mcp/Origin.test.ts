import { assert, it } from "@effect/vitest"
import { isAllowedOrigin } from "../../../../src/adapters/inbound/mcp/HttpEndpoint.ts"

const publicUrl = "https://prompts.example.com"

it.each([
  ...[undefined, "http://localhost", "http://localhost:6274", "https://127.0.0.1:1", "http://[::1]:3000"],
  publicUrl
])(
  "isAllowedOrigin allows the origin %j if it is local, absent or the origin of the public URL",
  (origin) => {
    assert.isTrue(isAllowedOrigin(origin, publicUrl))
  }
)

it.each([
  ...["http://prompts.example.com", "https://prompts.example.com.evil.com", "http://localhost.evil.com"],
  ...["http://evil.com/localhost", "http://localhost@evil.com", "http://127.0.0.1.evil.com"],
  ...["null", "", "file://localhost"]
])("isAllowedOrigin rejects the origin %j", (origin) => {
  assert.isFalse(isAllowedOrigin(origin, publicUrl))
})

it("without a public URL, isAllowedOrigin rejects the origins of other machines", () => {
  assert.isFalse(isAllowedOrigin(publicUrl, undefined))
})
