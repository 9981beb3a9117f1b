import { expect, it } from "vitest"
import { startApi } from "../api/startApi.ts"
import { makeTenant, prompt } from "../support/archives.ts"
import { read } from "../support/clients/read.ts"
import { responseHits } from "../support/services/metrics.ts"

const tenant = makeTenant({ prompts: [prompt()] })
const api = startApi([tenant.archive])

it("from the moment at which a key expires, the service rejects the key like a revoked key, even if responses to the key are cached", async () => {
  const end = Date.now() + 2_000
  await api.sql("update api_keys set expires_at = $1", [new Date(end).toISOString()])
  const before = await api.metric(responseHits)
  const url = `${api.service().url}/api/v1/prompts/${tenant.archive.prompts[0]!.id}`
  const early = new Set<string>()
  const late = new Set<string>()
  for (let sentAt = 0; sentAt < end + 100; ) {
    sentAt = Date.now()
    const { status, body } = await read(url, tenant.key.plaintext)
    const reply = `${status} ${JSON.parse(body).error?.message}`
    if (Date.now() < end) early.add(reply)
    if (sentAt >= end) late.add(reply)
  }
  expect([...early]).toEqual(["200 undefined"])
  expect([...late]).toEqual(["401 API key has been revoked"])
  expect((await api.metric(responseHits)) - before).toBeGreaterThan(1)
})
