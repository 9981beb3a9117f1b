import { afterAll, beforeAll, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { connectTo, embedded, makeResources } from "../support/database.ts"
import { startObserved } from "../support/observed.ts"
import { exchangeAll, headerOf, type RawAnswer } from "../support/rawHttp.ts"
import type { Service } from "../support/service.ts"

const requests = 10_000
const lanes = 24
const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31))

/** Numbers from 0 up to 1 that the seed determines (mulberry32). */
const random = (() => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
})()
const below = (n: number) => Math.floor(random() * n)
const one = <A>(of: ReadonlyArray<A>): A => of[below(of.length)]!
const some = <A>(most: number, make: () => A): Array<A> => Array.from({ length: below(most + 1) }, make)

const tenant = sample()
const ids = tenant.archive.prompts.map(({ id }) => id as string)

const bytes = () => some(12, () => String.fromCharCode(below(256))).join("")
const visible = () => some(12, () => String.fromCharCode(33 + below(94))).join("")
const escaped = () => some(6, () => `%${below(256).toString(16).padStart(2, "0")}`).join("")
const junk = () =>
  one([bytes, visible, visible, escaped, () => "a".repeat(below(400)), () => "%", () => ""])()

const segment = () =>
  one([() => one(ids), () => one(ids).toUpperCase(), junk, () => "1", () => "versions", () => "resolved"])()
const path = () =>
  one([
    () => "/api/v1/prompts",
    () => `/api/v1/prompts/${segment()}`,
    () => `/api/v1/prompts/${segment()}/resolved`,
    () => `/api/v1/prompts/${segment()}/versions`,
    () => `/api/v1/prompts/${segment()}/versions/${one(["0", "1", "2", "99999999999", junk()])}`,
    () => one(["/healthz", "/readyz", "/nowhere", "/API/v1/prompts", "//api/v1/prompts"]),
    () => `/${some(5, segment).join("/")}`,
    () => `http://${junk()}/api/v1/prompts`,
    junk
  ])()
const value = () =>
  one([
    junk,
    () => String(below(1000)),
    () => "-1",
    () => "1e9",
    () => "system",
    () => one(ids),
    () => "%00",
    () => "production"
  ])()
const query = () =>
  one([
    () => "",
    () =>
      `?${some(4, () => `${one(["page", "per_page", "folder_id", "tag", "type", junk()])}=${value()}`).join("&")}`,
    () => `?${junk()}`
  ])()
const authorization = () =>
  one([
    () => [`Authorization: Bearer ${tenant.keys.active.plaintext}`],
    () => [`Authorization: Bearer ${tenant.keys.active.plaintext}`],
    () => [`Authorization: Bearer ${one(Object.values(tenant.keys)).plaintext}`],
    () => [`Authorization: ${one(["Bearer", "bearer", "Basic", junk()])} ${junk()}`],
    () => [],
    () => some(3, () => `Authorization: ${junk()}`)
  ])()
const header = () =>
  one([
    () => `If-None-Match: ${one(["*", '"x"', 'W/"x"', junk()])}`,
    () => `X-Request-Id: ${junk()}`,
    () => `Cookie: ${junk()}`,
    () => `${visible().replaceAll(/[^A-Za-z]/g, "") || "X"}: ${junk()}`,
    () => bytes(),
    () => "Accept-Encoding: gzip",
    () => "Expect: 100-continue",
    () => "Upgrade: websocket"
  ])()
const method = () => one(["GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "DELETE", visible(), junk()])

const request = () => {
  const lines = [...authorization(), ...some(3, header)].map((line) => line.replaceAll(/[\r\n]/g, ""))
  return [
    `${method()} ${path()}${query()} HTTP/1.1`,
    "Host: localhost",
    "Connection: close",
    ...lines,
    "",
    ""
  ].join("\r\n")
}

const isEnvelope = (answer: RawAnswer): boolean => {
  if (headerOf(answer, "x-request-id") === undefined) return false
  if (answer.status === 304) return answer.body === ""
  if (headerOf(answer, "content-type") !== "application/json") return false
  if (answer.body === "") return Number(headerOf(answer, "content-length")) > 0
  const body = JSON.parse(answer.body)
  return answer.status === 200
    ? "data" in body || body.status === "ok"
    : typeof body.error.code === "string" &&
        typeof body.error.message === "string" &&
        Object.keys(body).length === 1
}

const resources = makeResources()
let service: Service
beforeAll(async () => {
  const env = await resources.acquire(embedded.acquire)
  service = await startObserved({
    ...env,
    RATE_LIMIT_PER_KEY: "1000000",
    RATE_LIMIT_PER_PROCESS: "1000000"
  })
  const database = await resources.acquire(connectTo(env))
  await database.importArchive(tenant.archive)
})
afterAll(async () => {
  await service?.stop()
  await resources.release()
})

it(`${requests} generated requests get the envelope, never a 5xx, never no answer (FUZZ_SEED=${seed})`, async () => {
  console.log(`FUZZ_SEED=${seed}`)
  const statuses = new Map<number, number>()
  let sent = 0
  const lane = async () => {
    while (sent < requests) {
      sent++
      const text = request()
      const answers = await exchangeAll(service.port, text)
      const problem = answers.find((answer) => answer.status >= 500 || !isEnvelope(answer))
      if (answers.length === 0 || problem !== undefined)
        throw new Error(`FUZZ_SEED=${seed}: ${JSON.stringify(text)} got ${JSON.stringify(problem)}`)
      const [{ status }] = answers as [RawAnswer]
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  // The generator reaches far enough to mean something.
  for (const status of [200, 304, 400, 401, 404, 405]) expect(statuses.get(status)).toBeGreaterThanOrEqual(3)
  expect(service.output()).not.toContain('"level":"error"')
}, 120_000)
