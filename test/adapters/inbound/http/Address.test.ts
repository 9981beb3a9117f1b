import { assert, it } from "@effect/vitest"
import { parsePublicUrl, toPublicPath } from "../../../../src/adapters/inbound/http/Address.ts"

it.each([
  ["https://prompts.example.com/", "https://prompts.example.com", ""],
  ["HTTP://Prompts.Example.com:80/", "http://prompts.example.com", ""],
  ["http://[::1]:3000/api/", "http://[::1]:3000/api", "/api"],
  ["https://example.com/a b/ü", "https://example.com/a%20b/%C3%BC", "/a%20b/%C3%BC"],
  ["https://example.com/a/../prompts", "https://example.com/prompts", "/prompts"]
])("parsePublicUrl normalizes %s to %s, whose path is %j", (text, url, path) => {
  assert.strictEqual(parsePublicUrl(text), url)
  assert.strictEqual(parsePublicUrl(url), url)
  assert.strictEqual(toPublicPath(url), path)
})

it.each([
  ...["", "prompts.example.com", "//prompts.example.com", "/prompts", "https:", "https://"],
  ...["https:prompts.example.com", "ftp://prompts.example.com", "javascript:alert(1)"],
  ...["https://ada@prompts.example.com", "https://ada:secret@prompts.example.com"],
  ...["https://prompts.example.com?", "https://prompts.example.com/?a=b", "https://prompts.example.com/#"],
  ...["https://prompts.example.com//elsewhere.example", "https://prompts.example.com/a//"],
  "https://prompts.example.com:99999"
])("parsePublicUrl returns undefined for %j", (text) => {
  assert.isUndefined(parsePublicUrl(text))
})
