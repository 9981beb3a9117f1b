import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { afterAll, expect } from "vitest"
import { sample } from "../../support/archives.ts"
import { exchangeAll, getHeader, type HttpResponse, rawRequest } from "../../support/clients/rawHttp.ts"
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
/** One of these texts, or seldom any text. */
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

const toText = ({ method, target, query, authorization, lines }: typeof Request.Type): string => {
  const parameters = query.map((pair) => pair.join("="))
  // An empty line would end the request, and the bytes behind it could be an invalid request.
  const headers = [`Authorization: ${authorization}`, ...lines].map((line) => line.replaceAll(/[\r\n]/g, ""))
  const text = rawRequest(
    parameters.length === 0 ? target : `${target}?${parameters.join("&")}`,
    headers.filter((line) => line !== ""),
    method
  )
  return Buffer.from(text).toString("latin1")
}

const isEnvelope = (response: HttpResponse): boolean => {
  const { status, body } = response
  if (getHeader(response, "x-request-id") === undefined) return false
  if (status === 304) return body === ""
  if (status === 308) return body === "" && getHeader(response, "location") === "/docs"
  if (getHeader(response, "content-type") !== "application/json") return false
  if (body === "") return Number(getHeader(response, "content-length")) > 0
  const { data, status: health, error, ...others } = JSON.parse(body)
  return status === 200
    ? data !== undefined || health === "ok"
    : typeof error.code === "string" && typeof error.message === "string" && Object.keys(others).length === 0
}

const statuses = new Set<number>()
afterAll(() => {
  // The generator must make requests of every kind.
  expect([...statuses]).toEqual(expect.arrayContaining([200, 304, 400, 401, 404, 405]))
  expect(api.service().output()).not.toContain('"level":"error"')
})

it.effect.prop(
  "each random request gets a response in the format of the API with a status below 500",
  { request: Request },
  ({ request }) =>
    Effect.promise(async () => {
      const responses = await exchangeAll(api.service().port, toText(request))
      expect(responses.length).toBeGreaterThan(0)
      statuses.add(responses[0]!.status)
      expect(responses.filter((response) => response.status >= 500 || !isEnvelope(response))).toEqual([])
    }),
  { arbitrary: { runs: 3_000 } }
)
