import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { embedded, makeResources } from "../../test/support/database.ts"
import { freePort } from "../../test/support/ports.ts"
import { run, type Service, startService } from "../../test/support/service.ts"
import { PromptClient } from "../src/index.ts"
import { makeBundle } from "./makeBundle.ts"

const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"
const { workspace } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../src/demo/workspace.json"), "utf8")
)
const resources = makeResources()
let env: Record<string, string>
let key: string
let service: Service | undefined

const start = async () => (service = await startService(env, "/readyz", ["--demo"]))
const stop = async () => {
  await service?.stop()
  service = undefined
}

beforeAll(async () => {
  env = { ...(await resources.acquire(embedded.acquire)), PORT: String(await freePort()) }
  const { output } = await start()
  key = await vi.waitUntil(() => /key_live_[0-9a-f]{64}/.exec(output())?.[0], { timeout: 10_000 })
  await stop()
})
afterAll(async () => {
  await stop()
  await resources.release()
})

it("an application that starts in an outage gets bundled texts, later fresh ones, and an error once its key is revoked", async () => {
  const bundle = makeBundle([{ id, content: "Bundled text for {{shop}}" }])
  const client = new PromptClient({
    apiKey: key,
    baseUrl: `http://127.0.0.1:${env.PORT}`,
    maxRetries: 0,
    timeout: 5_000,
    cache: { ttl: 0, maxStale: 0 },
    bundle
  })
  const fallback = vi.fn(() => "Fallback")
  const readText = async () => {
    const { data, source, version } = await client.prompts.getResolved(id, { fallback })
    return [source, version, data.resolved_content.slice(0, 12)]
  }
  expect(await readText()).toEqual(["bundled", 7, "Bundled text"])
  expect(await client.prompts.getResolved(id.replace("c", "d"), { fallback })).toMatchObject({
    source: "fallback",
    data: { resolved_content: "Fallback" }
  })

  await start()
  expect(await readText()).toEqual(["fresh", 3, "You are a su"])
  await stop()
  expect(await readText()).toEqual(["bundled", 7, "Bundled text"])

  await start()
  expect(await readText()).toEqual(["fresh", 3, "You are a su"])
  fallback.mockClear()
  const listed = await run(["keys", "list", "--workspace", workspace.id, "--json"], env)
  const keys: ReadonlyArray<{ readonly id: string }> = JSON.parse(listed.stdout)
  for (const { id } of keys) expect(await run(["keys", "revoke", id], env)).toMatchObject({ code: 0 })
  const revoked = { name: "UnauthorizedError", message: "API key has been revoked" }
  await vi.waitFor(() => expect(readText()).rejects.toMatchObject(revoked), { timeout: 10_000 })
  await stop()
  // The service is down again, but its last word was that the key is revoked.
  await expect(readText()).rejects.toMatchObject({ name: "ConnectionError" })
  expect(fallback).not.toHaveBeenCalled()
})
