import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import {
  findOrigin,
  parsePublicUrl,
  toBasePath
} from "../../../../../src/adapters/inbound/http/request/PublicUrl.ts"

describe("parsePublicUrl", () => {
  it.each([
    ["https://prompts.example.com", "https://prompts.example.com", ""],
    ["https://prompts.example.com/", "https://prompts.example.com", ""],
    ["HTTP://Prompts.Example.com:80/", "http://prompts.example.com", ""],
    ["http://127.0.0.1:3000", "http://127.0.0.1:3000", ""],
    ["http://[::1]:3000/api/", "http://[::1]:3000/api", "/api"],
    ["https://example.com/a b/ü", "https://example.com/a%20b/%C3%BC", "/a%20b/%C3%BC"],
    ["https://example.com/a/../prompts", "https://example.com/prompts", "/prompts"]
  ])("returns %s without a trailing slash: %s, with the base path %j", (text, url, basePath) => {
    assert.strictEqual(parsePublicUrl(text), url)
    assert.strictEqual(parsePublicUrl(url), url)
    assert.strictEqual(toBasePath(url), basePath)
  })

  it.each([
    "",
    "prompts.example.com",
    "//prompts.example.com",
    "/prompts",
    "https:",
    "https://",
    "https:prompts.example.com",
    "ftp://prompts.example.com",
    "javascript:alert(1)",
    "https://ada@prompts.example.com",
    "https://ada:secret@prompts.example.com",
    "https://prompts.example.com?",
    "https://prompts.example.com/?a=b",
    "https://prompts.example.com/#",
    "https://prompts.example.com//elsewhere.example",
    "https://prompts.example.com/a//",
    "https://prompts.example.com:99999"
  ])("returns undefined for %j", (text) => {
    assert.isUndefined(parsePublicUrl(text))
  })
})

/** Characters of hosts, and others that parsers of hosts and URLs treat in special ways. */
const hostLike = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Literals([..."abzAZ0129.-_:[]%@/?#\\ ,", "é", "。", "\n"])), {
    maxLength: 12
  }),
  (chars) => chars.join("")
)

const send = (host: string | undefined, target = "/openapi.json") =>
  findOrigin({ method: "GET", target, headers: { host } })

describe("findOrigin", () => {
  it.each([
    ["prompts.example.com", "http://prompts.example.com"],
    ["Prompts.Example.com:8080", "http://prompts.example.com:8080"],
    ["localhost:80", "http://localhost"],
    ["127.0.0.1:3000", "http://127.0.0.1:3000"],
    ["[::1]:3000", "http://[::1]:3000"],
    ["prompt_retrieval-1:3000", "http://prompt_retrieval-1:3000"]
  ])("returns the origin of the host %s: %s", (host, origin) => {
    assert.strictEqual(send(host), origin)
  })

  it.each([
    undefined,
    "",
    " ",
    "a b",
    "a,b",
    "a/b",
    "a?b",
    "a#b",
    "a\\b",
    "ada@a",
    "a:0",
    "a:65536",
    "a:80a",
    "a:",
    ":80",
    "-a",
    "a.",
    "<script>",
    '"a"',
    "a%2fb",
    "[::1",
    "[::1]a",
    "[::g]",
    "[not an address]",
    "é",
    "a".repeat(254)
  ])("returns undefined for the host %j", (host) => {
    assert.isUndefined(send(host))
  })

  it("takes the scheme of an absolute-form target, and its host only without a Host header", () => {
    assert.strictEqual(send("a:1", "https://b:2/openapi.json"), "https://a:1")
    assert.strictEqual(send(undefined, "HTTPS://b:2/openapi.json"), "https://b:2")
    assert.strictEqual(send(undefined, "https://b"), "https://b")
    assert.isUndefined(send(undefined, "https://ada@b/openapi.json"))
    assert.isUndefined(send(undefined, "ftp://b/openapi.json"))
  })

  it.prop(
    "returns undefined, or an origin of the letters, digits and separators of the host",
    { host: hostLike },
    ({ host }) => {
      const origin = send(host)
      if (origin === undefined) return
      assert.match(origin, /^http:\/\/[a-z0-9._[\]:-]+$/)
      assert.strictEqual(new URL(origin).origin, origin)
    },
    { arbitrary: { runs: 2000 } }
  )
})
