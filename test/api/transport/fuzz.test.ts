import { expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { exchangeAll, getHeader, type HttpResponse, rawRequest } from "../../support/clients/rawHttp.ts"
import { makeRandom } from "../../support/random.ts"
import { startApi } from "../startApi.ts"

const requests = 3_000
const clients = 8
const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31))

const tenant = sample()
const ids = tenant.archive.prompts.map(({ id }) => id as string)
const { int, pick } = makeRandom(seed)
const some = <A>(max: number, make: () => A): Array<A> => Array.from({ length: int(max + 1) }, make)

const bytes = () => some(12, () => String.fromCharCode(int(256))).join("")
const visible = () => some(12, () => String.fromCharCode(33 + int(94))).join("")
const escaped = () => some(6, () => `%${int(256).toString(16).padStart(2, "0")}`).join("")
const junk = (): string => pick([bytes(), visible(), visible(), escaped(), "a".repeat(int(400)), "%", ""])

const id = () => pick(ids)
const segment = (): string => pick([id(), id().toUpperCase(), junk(), "1", "versions", "resolved"])
const path = (): string =>
  pick([
    "/api/v1/prompts",
    `/api/v1/prompts/${segment()}${pick(["", "/resolved", "/versions"])}`,
    `/api/v1/prompts/${segment()}/versions/${pick(["0", "1", "2", "99999999999", junk()])}`,
    pick(["/healthz", "/readyz", "/nowhere", "/API/v1/prompts", "//api/v1/prompts"]),
    `/${some(5, segment).join("/")}`,
    `http://${junk()}/api/v1/prompts`,
    junk()
  ])
const value = (): string =>
  pick([junk(), id(), String(int(1000)), "-1", "1e9", "system", "%00", "production"])
const parameter = () => `${pick(["page", "per_page", "folder_id", "tag", "type", junk()])}=${value()}`
const query = (): string => pick(["", `?${some(4, parameter).join("&")}`, `?${junk()}`])
const valid = `Authorization: Bearer ${tenant.keys.active.plaintext}`
const authorization = (): ReadonlyArray<string> =>
  pick([
    [valid],
    [valid],
    [`Authorization: Bearer ${pick(Object.values(tenant.keys)).plaintext}`],
    [`Authorization: ${pick(["Bearer", "bearer", "Basic", junk()])} ${junk()}`],
    [],
    some(3, () => `Authorization: ${junk()}`)
  ])
const header = (): string =>
  pick([
    `If-None-Match: ${pick(["*", "*", "*", 'W/"x"', junk()])}`,
    `X-Request-Id: ${junk()}`,
    `${visible().replaceAll(/[^A-Za-z]/g, "") || "X"}: ${junk()}`,
    bytes(),
    ...["Accept-Encoding: gzip", "Expect: 100-continue", "Upgrade: websocket"]
  ])
const method = () =>
  pick(["GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "DELETE", visible(), junk()])

/** Makes a raw HTTP request that is valid, invalid or random text. */
const generate = (): string => {
  // An empty line would end the request, and the bytes behind it could be an invalid request.
  const lines = [...authorization(), ...some(3, header)].map((line) => line.replaceAll(/[\r\n]/g, ""))
  return rawRequest(
    path() + query(),
    lines.filter((line) => line !== ""),
    method()
  )
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

const api = startApi([tenant.archive])

it(`each of ${requests} random requests gets a response in the format of the API with a status below 500 (FUZZ_SEED=${seed})`, async () => {
  const statuses: Array<number> = []
  let sent = 0
  const runClient = async () => {
    while (sent++ < requests) {
      const text = generate()
      const responses = await exchangeAll(api.service().port, text)
      const problem = responses.find((response) => response.status >= 500 || !isEnvelope(response))
      if (responses.length === 0 || problem !== undefined)
        throw new Error(`${JSON.stringify(text)} got ${JSON.stringify(problem)}`)
      statuses.push(responses[0]!.status)
    }
  }
  await Promise.all(Array.from({ length: clients }, runClient))
  // The generator must make requests of every kind.
  expect(statuses).toEqual(expect.arrayContaining([200, 304, 400, 401, 404, 405]))
  expect(api.service().output()).not.toContain('"level":"error"')
})
