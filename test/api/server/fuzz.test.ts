import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { afterAll, expect } from "vitest"
import { sample } from "../../support/archives.ts"
import { endpointTargets, startApi } from "../startApi.ts"

const tenant = sample()
const api = startApi([tenant.archive])

const [id] = tenant.archive.prompts.map(({ id }) => id)
const active = `Bearer ${tenant.keys.active.plaintext}`

const Junk = Schema.Union([
  Schema.Literals(["", "%", "%ff", "-1", "a".repeat(400)]),
  Schema.String.check(Schema.isPattern(/^[!-~]{0,12}$/)),
  Schema.String
])
/** Generates one of these texts in 80 % of all cases, and a text of `Junk` in 20 %. */
const mostly = (...texts: ReadonlyArray<string>) => {
  const Usual = Schema.Literals(texts)
  return Schema.Union([Usual, Usual, Usual, Usual, Junk])
}
const Segment = mostly(id!, id!.toUpperCase(), "1", "99999999999", "versions", "resolved")

/** A request that is valid, invalid or random text. */
const Request = Schema.Struct({
  method: mostly("GET", "GET", "GET", "HEAD", "POST"),
  target: Schema.Union([
    mostly(...Object.values(endpointTargets(id!)), "/healthz", "/readyz", "/", "//api/v1/prompts"),
    Schema.TemplateLiteral(["/api/v1/prompts/", Segment, "/", Segment, "/", Segment]),
    Schema.TemplateLiteral(["http://", Junk, "/api/v1/prompts"])
  ]),
  query: Schema.Array(
    Schema.Tuple([
      mostly("page", "per_page", "folder_id", "tag", "type", "prompt", "names"),
      mostly("1", "100", "system", "production", "true", id!)
    ])
  ).check(Schema.isMaxLength(3)),
  authorization: mostly(active, active, active, `Bearer ${tenant.keys.revoked.plaintext}`, "Bearer"),
  lines: Schema.Array(
    Schema.Union([
      Schema.TemplateLiteral(["If-None-Match: ", mostly("*", 'W/"x"')]),
      Schema.TemplateLiteral([mostly("X-Request-Id", "Authorization", "X"), ": ", Junk]),
      mostly("Accept-Encoding: gzip", "Expect: 100-continue", "Upgrade: websocket")
    ])
  ).check(Schema.isMaxLength(2))
})

/** Returns the bytes of a text without line breaks as Latin-1, as `send` sends them. */
const toBytes = (text: string): string => Buffer.from(text.replaceAll(/[\r\n]/g, "")).toString("latin1")

const statuses = new Set<number>()
afterAll(() => {
  // The generator must make requests of every kind.
  expect([...statuses]).toEqual(expect.arrayContaining([200, 304, 400, 401, 404, 405]))
  expect(api.service().output()).not.toContain('"level":"error"')
})

it.effect.prop(
  "each random request gets one response that matches the OpenAPI document, with a status below 500",
  { request: Request },
  ({ request: { method, target, query, authorization, lines } }) =>
    Effect.promise(async () => {
      const pairs = query.map((pair) => pair.join("="))
      // An empty line would end the request, and the bytes after this line could be an invalid request.
      const headers = [`Authorization: ${authorization}`, ...lines].map(toBytes).filter((line) => line !== "")
      const whole = pairs.length === 0 ? target : `${target}?${pairs.join("&")}`
      const { status } = await api.send(toBytes(whole), headers, toBytes(method))
      statuses.add(status)
      expect(status).toBeLessThan(500)
    }),
  { arbitrary: { runs: 3_000 } }
)
