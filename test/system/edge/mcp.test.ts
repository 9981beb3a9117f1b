import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { keepAliveMs } from "../../../src/adapters/inbound/mcp/Streams.ts"
import { makeResources } from "../../support/database.ts"
import { startNginxCache } from "../../support/programs/edge.ts"
import { freePort, listenOnFreePort } from "../../support/ports.ts"
import { adaptConfig, runProgram } from "../../support/programs/programs.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const deploy = join(import.meta.dirname, "../../../deploy")
/** The idle timeouts of the proxies and the keep-alive interval of the stream are divided by this factor. */
const factor = 20
const silenceMs = (3 * 30_000) / factor

describe("an MCP stream that sends no message", () => {
  const resources = makeResources()
  const directory = makeTestDirectory("mcp-")
  let port: number
  let open = 0

  beforeAll(async () => {
    const upstream = createServer((_, response) => {
      open++
      response.writeHead(200, { "content-type": "text/event-stream", "x-accel-buffering": "no" })
      response.write(":\n\n")
      const timer = setInterval(() => response.write(":\n\n"), keepAliveMs / factor)
      response.once("close", () => {
        open--
        clearInterval(timer)
      })
    })
    port = await resources.acquire(listenOnFreePort(upstream))
  })
  afterAll(() => resources.release())

  /** Expects the stream to stay open for three times the longest timeout of a proxy. Then disconnects. */
  const survives = async (proxyPort: number): Promise<void> => {
    const controller = new AbortController()
    const response = await fetch(`http://127.0.0.1:${proxyPort}/mcp`, { signal: controller.signal })
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"])
    const ended = response.text().then(
      () => "the stream ended",
      () => "the stream was cut"
    )
    expect(await Promise.race([ended, setTimeout(silenceMs, "open")])).toBe("open")
    expect(open).toBe(1)
    controller.abort()
    await expect.poll(() => open, { timeout: (2 * keepAliveMs) / factor }).toBe(0)
  }

  it("an MCP stream without messages stays open behind HAProxy with deploy/haproxy.cfg", async () => {
    const proxyPort = await freePort()
    const file = join(directory, "haproxy.cfg")
    const text = readFileSync(join(deploy, "haproxy.cfg"), "utf8")
    writeFileSync(
      file,
      adaptConfig(text, {
        "127.0.0.1:8080": `127.0.0.1:${proxyPort}`,
        "127.0.0.1:3000": `127.0.0.1:${port}`,
        "server two 127.0.0.1:3001": "",
        "option httpchk": "",
        "http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost": "",
        "http-check expect status 200": "",
        "default-server check inter 1s fall 2 rise 1": "",
        "timeout client  30s": `timeout client ${30_000 / factor}ms`,
        "timeout server  15s": `timeout server ${15_000 / factor}ms`
      })
    )
    await resources.acquire(runProgram("haproxy", ["-db", "-f", file], proxyPort))
    await survives(proxyPort)
  }, 30_000)

  it("an MCP stream without messages stays open behind nginx with deploy/nginx.conf", async () => {
    const nginx = await resources.acquire(
      startNginxCache({ port }, { "proxy_read_timeout 15s;": `proxy_read_timeout ${15_000 / factor}ms;` })
    )
    await survives(nginx.port)
  }, 30_000)

  it("deploy/compose/haproxy.cfg has the same timeouts as deploy/haproxy.cfg", () => {
    const readTimeouts = (file: string) =>
      readFileSync(join(deploy, file), "utf8").match(/^ *timeout (client|server) .*$/gm)
    expect(readTimeouts("compose/haproxy.cfg")).toEqual(readTimeouts("haproxy.cfg"))
  })
})
