import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { sample } from "../../support/archives.ts"
import { makeRequestGenerator, toComparable } from "./generatedRequests.ts"
import { responseHits } from "../../support/services/metrics.ts"
import { getHeader } from "../../support/clients/rawHttp.ts"
import { startApi } from "../startApi.ts"

const tenant = sample()
const [greeting] = tenant.archive.prompts
const base = `/api/v1/prompts/${greeting!.id}`
const api = startApi([tenant.archive])

const { send } = api

const authorization = `Authorization: Bearer ${tenant.keys.active.plaintext}`

let spaces = 10
/** Returns an Authorization header line that no earlier request had, so that no cached response matches. */
const makeUncachedAuthorization = () => authorization.replace("Bearer ", `Bearer${" ".repeat(++spaces)}`)

const { GeneratedRequest, toTarget, toConditionLines } = makeRequestGenerator(tenant.archive)

it.effect.prop(
  "a cached response equals the fresh response except for Date and X-Request-Id, and only a 200 is cached",
  { request: GeneratedRequest },
  ({ request }) =>
    Effect.promise(async () => {
      const target = toTarget(request)
      const plain = await send(target, [makeUncachedAuthorization()])
      const condition = toConditionLines(request, getHeader(plain, "etag") ?? "")
      const lines = [makeUncachedAuthorization(), ...condition]
      const before = await api.metric(responseHits)
      const fresh = await send(target, lines, request.method)
      expect(await api.metric(responseHits)).toBe(before)
      const repeated = await send(target, lines, request.method)
      expect(await api.metric(responseHits)).toBe(before + (plain.status === 200 ? 1 : 0))
      expect(toComparable(repeated)).toEqual(toComparable(fresh))
    }),
  { arbitrary: { runs: 200 }, timeout: 60_000 }
)

it("the service returns a cached response only if the target and the Authorization header have the same bytes as in the request whose response was cached", async () => {
  await send(base, [authorization])
  const before = await api.metric(responseHits)
  const others: ReadonlyArray<readonly [string, ReadonlyArray<string>, string?]> = [
    [`${base}?`, [authorization]],
    [base.toUpperCase().replace("/API/V1/PROMPTS", "/api/v1/prompts"), [authorization]],
    [base, [authorization.replace("Bearer ", "bearer ")]],
    [base, [authorization.replace("Bearer ", "Bearer  ")]],
    [base, [`Authorization: Bearer ${tenant.keys.second.plaintext}`]],
    [base, [authorization, authorization]],
    [base, []],
    [base, [authorization, "Host: other"]],
    [base, [authorization], "POST"]
  ]
  for (const [target, lines, method] of others) await send(target, lines, method)
  expect(await api.metric(responseHits)).toBe(before)
  expect((await send(base, [authorization, authorization])).status).toBe(401)
  expect((await send(base, [authorization, "Host: other"])).status).toBe(400)
})

it("Prompt-Version of a 304 is the current version, even if this version has the same text as the version before", async () => {
  const first = await send(`${base}/resolved`, [authorization])
  const version = Number(getHeader(first, "prompt-version"))
  const condition = `If-None-Match: ${getHeader(first, "etag")}`
  await api.sql(`update prompts set current_version = current_version + 1 where id = '${greeting!.id}'`)
  const read = async () => {
    const response = await send(`${base}/resolved`, [authorization, condition])
    return [response.status, getHeader(response, "prompt-version")]
  }
  await expect.poll(read).toEqual([304, String(version + 1)])
})

it("an edit of a prompt and the revocation of a key take effect even if responses are cached", async () => {
  const key = tenant.keys.second.plaintext
  const read = () => send(base, [`Authorization: Bearer ${key}`])
  for (let i = 0; i < 20; i++) {
    await api.sql(`update prompts set title = 'Title ${i}' where id = '${greeting!.id}'`)
    await expect.poll(async () => JSON.parse((await read()).body).data.title).toBe(`Title ${i}`)
    expect((await read()).status).toBe(200)
  }
  await api.sql(`update api_keys set revoked_at = now() where id = '${tenant.keys.second.stored.id}'`)
  await expect.poll(async () => (await read()).status).toBe(401)
})
