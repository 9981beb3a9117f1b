import { expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { exchangeAll, getHeader, type HttpResponse } from "../../support/clients/rawHttp.ts"
import { makeRandom } from "../../support/random.ts"
import { startApi } from "../startApi.ts"

const requests = 5_000
const clients = 24
const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31))

const tenant = sample()
const ids = tenant.archive.prompts.map(({ id }) => id as string)
const { int, pick } = makeRandom(seed)
const some = <A>(max: number, make: () => A): Array<A> => Array.from({ length: int(max + 1) }, make)

const bytes = () => some(12, () => String.fromCharCode(int(256))).join("")
const visible = () => some(12, () => String.fromCharCode(33 + int(94))).join("")
const escaped = () => some(6, () => `%${int(256).toString(16).padStart(2, "0")}`).join("")
const junk = () => pick([bytes, visible, visible, escaped, () => "a".repeat(int(400)), () => "%", () => ""])()

const segment = () =>
  pick([
    () => pick(ids),
    () => pick(ids).toUpperCase(),
    junk,
    () => "1",
    () => "versions",
    () => "resolved"
  ])()
const path = () =>
  pick([
    () => "/api/v1/prompts",
    () => `/api/v1/prompts/${segment()}`,
    () => `/api/v1/prompts/${segment()}/resolved`,
    () => `/api/v1/prompts/${segment()}/versions`,
    () => `/api/v1/prompts/${segment()}/versions/${pick(["0", "1", "2", "99999999999", junk()])}`,
    () => pick(["/healthz", "/readyz", "/nowhere", "/API/v1/prompts", "//api/v1/prompts"]),
    () => `/${some(5, segment).join("/")}`,
    () => `http://${junk()}/api/v1/prompts`,
    junk
  ])()
const value = () =>
  pick([
    junk,
    () => String(int(1000)),
    () => "-1",
    () => "1e9",
    () => "system",
    () => pick(ids),
    () => "%00",
    () => "production"
  ])()
const query = () =>
  pick([
    () => "",
    () =>
      `?${some(4, () => `${pick(["page", "per_page", "folder_id", "tag", "type", junk()])}=${value()}`).join("&")}`,
    () => `?${junk()}`
  ])()
const authorization = () =>
  pick([
    () => [`Authorization: Bearer ${tenant.keys.active.plaintext}`],
    () => [`Authorization: Bearer ${tenant.keys.active.plaintext}`],
    () => [`Authorization: Bearer ${pick(Object.values(tenant.keys)).plaintext}`],
    () => [`Authorization: ${pick(["Bearer", "bearer", "Basic", junk()])} ${junk()}`],
    () => [],
    () => some(3, () => `Authorization: ${junk()}`)
  ])()
const header = () =>
  pick([
    () => `If-None-Match: ${pick(["*", '"x"', 'W/"x"', junk()])}`,
    () => `X-Request-Id: ${junk()}`,
    () => `Cookie: ${junk()}`,
    () => `${visible().replaceAll(/[^A-Za-z]/g, "") || "X"}: ${junk()}`,
    () => bytes(),
    () => "Accept-Encoding: gzip",
    () => "Expect: 100-continue",
    () => "Upgrade: websocket"
  ])()
const method = () =>
  pick(["GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "DELETE", visible(), junk()])

/**
 * Makes a raw HTTP request that is valid, invalid or random text. Valid requests use the prompts and keys of the
 * tenant.
 */
const generate = (): string => {
  // An empty line would end the request, and the bytes behind it could be an invalid request.
  const lines = [...authorization(), ...some(3, header)]
    .map((line) => line.replaceAll(/[\r\n]/g, ""))
    .filter((line) => line !== "")
  return [
    `${method()} ${path()}${query()} HTTP/1.1`,
    "Host: localhost",
    "Connection: close",
    ...lines,
    "",
    ""
  ].join("\r\n")
}

const isEnvelope = (response: HttpResponse): boolean => {
  if (getHeader(response, "x-request-id") === undefined) return false
  if (response.status === 304) return response.body === ""
  if (response.status === 308) return response.body === "" && getHeader(response, "location") === "/docs"
  if (getHeader(response, "content-type") !== "application/json") return false
  if (response.body === "") return Number(getHeader(response, "content-length")) > 0
  const body = JSON.parse(response.body)
  return response.status === 200
    ? "data" in body || body.status === "ok"
    : typeof body.error.code === "string" &&
        typeof body.error.message === "string" &&
        Object.keys(body).length === 1
}

const api = startApi([tenant.archive])

it(`each of ${requests} random requests gets a response in the format of the API with a status below 500 (FUZZ_SEED=${seed})`, async () => {
  console.log(`FUZZ_SEED=${seed}`)
  const statuses = new Map<number, number>()
  let sent = 0
  const runClient = async () => {
    while (sent < requests) {
      sent++
      const text = generate()
      const responses = await exchangeAll(api.service().port, text)
      const problem = responses.find((response) => response.status >= 500 || !isEnvelope(response))
      if (responses.length === 0 || problem !== undefined)
        throw new Error(`FUZZ_SEED=${seed}: ${JSON.stringify(text)} got ${JSON.stringify(problem)}`)
      const [{ status }] = responses as [HttpResponse]
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: clients }, runClient))
  // The generator must make requests of every kind, so each of these statuses must occur at least 3 times.
  for (const status of [200, 304, 400, 401, 404, 405]) expect(statuses.get(status)).toBeGreaterThanOrEqual(3)
  expect(api.service().output()).not.toContain('"level":"error"')
}, 120_000)
