import { createHash } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as archives from "../support/archives.ts"
import { connectTo, makeResources, postgres } from "../support/database.ts"
import { findLeaks, takeLeaks } from "../support/leaks.ts"
import { startLoad } from "../support/load.ts"
import { exchange, rawRequest } from "../support/rawHttp.ts"
import { startService } from "../support/service.ts"

/** Every test that stops a service relies on this search. */
describe("findLeaks", () => {
  const resources = makeResources()
  const { archive, keys } = archives.sample()
  const [greeting] = archive.prompts
  const key = keys.active.plaintext
  const fetchKey = keys.second.plaintext
  const authorization = `Bearer ${key}`
  const query = "tag=gr%C3%B6%C3%9Fer+als&page=2"
  const target = `/api/v1/prompts/${greeting!.id.toUpperCase()}?${query}`
  const send = (port: number, path = target) =>
    exchange(port, rawRequest(path, [`Authorization: ${authorization}`, "Cookie: session=0123456"]))
  let env: Record<string, string>

  beforeAll(async () => {
    env = await resources.acquire(postgres.acquire)
    const service = await startService(env)
    try {
      await (await resources.acquire(connectTo(env))).importArchive(archive)
      await send(service.port)
      await fetch(`${service.url}/api/v1/prompts?folder_id=nowhere`, {
        headers: { authorization: `Bearer ${fetchKey}` }
      })
      await startLoad([`${service.url}/api/v1/prompts?tag=byhttp`], { cookie: "session=byhttp" }, 1).stop()
    } finally {
      expect(await service.stop()).toBe(0)
    }
  })
  afterAll(() => resources.release())

  const sha256 = (text: string) => createHash("sha256").update(text)
  it.each([
    ["a key", key],
    ["a key without its prefix", key.slice("key_live_".length)],
    ["a key in capitals", key.toUpperCase()],
    ["a key sent with fetch", fetchKey.slice("key_live_".length)],
    ["a key that no test sent", `key_live_${"0".repeat(64)}`],
    ["a key's hash", sha256(key).digest("hex")],
    ["a key's hash in base64", sha256(key).digest("base64")],
    ["a key's hash in base64url", sha256(key).digest("base64url")],
    ["the hash of the whole header", sha256(authorization).digest("base64url")],
    ["a query", query],
    ["a parameter of a query", "page=2"],
    ["a parameter's value", "gr%C3%B6%C3%9Fer+als"],
    ["a parameter's decoded value", "größer als"],
    ["a query sent with fetch", "folder_id=nowhere"],
    ["a query sent with node:http", "tag=byhttp"],
    ["a cookie sent with node:http", "session=byhttp"],
    ["a query that no test sent", "/prompts?x=1"],
    ["an id in the path", greeting!.id],
    ["a cookie", "session=0123456"],
    ["a prompt's text", "Greet {{customer}}."],
    ["a fragment's text", "Answer in a {{tone}} tone, in {{ language }}."],
    ["a version's text", "Content of version 2"],
    ["an override's value", "friendly"]
  ])("finds %s in text, log lines, spans and metrics", (_, secret) => {
    const label = secret.replaceAll(/["\\]/g, "\\$&")
    for (const output of [
      `prompt-retrieval: ${secret}`,
      JSON.stringify({ message: ["request", { route: `to ${secret}` }] }),
      JSON.stringify({ message: "Request failed", annotations: { [secret]: 1 } }),
      JSON.stringify({ spans: [{ attributes: [{ key: "url", value: { stringValue: secret } }] }] }),
      `requests{route="${label}"} 1`
    ])
      expect(findLeaks(output)).not.toEqual([])
  })

  it("finds no leak in configuration errors, log lines and metrics without secrets", () => {
    expect(
      findLeaks(
        [
          "prompt-retrieval: PORT must be a port, 0 to 65535",
          JSON.stringify({
            message: ["request", { route: "/api/v1/prompts/:id", request_id: archives.newId() }],
            annotations: {}
          }),
          'requests{route="/api/v1/prompts/:id/resolved",status="200"} 1'
        ].join("\n")
      )
    ).toEqual([])
  })

  it.each([
    ["URLs", "request.url", `a query, ${query}`],
    ["keys", "request.headers.authorization", `a key, ${key.slice("key_live_".length)}`]
  ])(
    "finds the leak when a service that writes its requests' %s is stopped",
    async (_, expression, leaked) => {
      const hook = `import { subscribe } from "node:diagnostics_channel";
      subscribe("http.server.request.start", ({ request }) => console.error(${expression}))`
      const service = await startService({
        ...env,
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}`
      })
      await send(service.port)
      await service.stop()
      expect(takeLeaks()).toEqual(expect.arrayContaining([expect.stringContaining(leaked)]))
    }
  )
})
