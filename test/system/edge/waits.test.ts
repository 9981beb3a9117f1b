import { createServer } from "node:http"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeResources } from "../../support/database.ts"
import { startNginx, startVarnish } from "../../support/programs/edge.ts"
import { freePort, listenOnFreePort } from "../../support/ports.ts"
import { adaptConfig, runHaproxy } from "../../support/programs/programs.ts"
import { sendWait, summarizeWait } from "../../support/clients/read.ts"

/** The longest wait, and the timeout of the proxies, which are both divided by the same factor here. */
const [waitMs, timeoutMs, factor] = [50_000, 60_000, 20]

describe("a request that waits for 50 s", () => {
  const resources = makeResources()
  let port: number

  beforeAll(async () => {
    const upstream = createServer(async (_, response) => {
      await setTimeout(waitMs / factor)
      response.writeHead(304, { "cache-control": "no-store", "preference-applied": "wait=50" }).end()
    })
    port = await resources.acquire(listenOnFreePort(upstream))
  })
  afterAll(() => resources.release())

  const expectResponse = async (proxyPort: number): Promise<void> => {
    const sent = sendWait(`http://127.0.0.1:${proxyPort}/api/v1/prompts`, "a", '"a"')
    expect(summarizeWait(await sent.response)).toEqual({
      status: 304,
      applied: "wait=50",
      caching: "no-store"
    })
  }

  it("gets its response through HAProxy with deploy/haproxy.cfg", async () => {
    const proxyPort = await freePort()
    const config = adaptConfig("haproxy.cfg", {
      "bind :443 ssl crt /etc/haproxy/prompt-retrieval.pem alpn h2,http/1.1": `bind 127.0.0.1:${proxyPort}`,
      "127.0.0.1:3000": `127.0.0.1:${port}`,
      "server two 127.0.0.1:3001": "",
      "option httpchk": "",
      "http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost": "",
      "http-check expect status 200": "",
      "default-server check inter 1s fall 2 rise 1": "",
      "timeout client  60s": `timeout client ${timeoutMs / factor}ms`,
      "timeout server  60s": `timeout server ${timeoutMs / factor}ms`
    })
    await resources.acquire(runHaproxy(config, proxyPort))
    await expectResponse(proxyPort)
  }, 30_000)

  it("gets its response through nginx with deploy/nginx.conf", async () => {
    const replacements = { "proxy_read_timeout 60s;": `proxy_read_timeout ${timeoutMs / factor}ms;` }
    await expectResponse((await resources.acquire(startNginx({ port }, replacements))).port)
  }, 30_000)

  it("gets its response through Varnish with deploy/varnish.vcl", async () => {
    const replacements = { "first_byte_timeout = 60s": `first_byte_timeout = ${timeoutMs / factor / 1_000}s` }
    await expectResponse((await resources.acquire(startVarnish({ port }, replacements))).port)
  }, 30_000)
})
