import { expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { exchangeAll, getHeader, type HttpResponse } from "../../support/clients/rawHttp.ts"
import { makeRequestGenerator } from "../../support/clients/rawRequests.ts"
import { startApi } from "../startApi.ts"

const requests = 5_000
const clients = 24
const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31))

const tenant = sample()
const generate = makeRequestGenerator(tenant, seed)

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

it(`${requests} generated requests all get a response that has the envelope and is not a 5xx (FUZZ_SEED=${seed})`, async () => {
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
  // The generator makes requests of every kind.
  for (const status of [200, 304, 400, 401, 404, 405]) expect(statuses.get(status)).toBeGreaterThanOrEqual(3)
  expect(api.service().output()).not.toContain('"level":"error"')
}, 120_000)
