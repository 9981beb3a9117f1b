import { createServer, type RequestListener, type ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import { expect, it } from "vitest"
import { toNodeListener } from "../../src/index.ts"
import { exchangeAll, rawRequest } from "../support/clients/rawHttp.ts"
import { makeAcquire } from "../support/makeAcquire.ts"
import { listenOnFreePort } from "../support/network/ports.ts"

const acquire = makeAcquire()
const listen = (listener: RequestListener) => acquire(listenOnFreePort(createServer(listener)))

/**
 * Sends a request line to a listener whose handler responds with the path of the request. Returns the statuses of the
 * responses, and the path if the handler was called.
 */
const send = async (line: string, prefix?: string) => {
  const handler = async ({ url }: Request) => {
    const { pathname } = new URL(url)
    return new Response(pathname, { headers: { "content-length": String(pathname.length) } })
  }
  const port = await listen(toNodeListener(handler, prefix))
  const headers = "Host: a\r\nX-A: \xff\r\nUpgrade: x\r\nConnection: close, upgrade"
  const responses = await exchangeAll(port, `${line} HTTP/1.1\r\n${headers}\r\n\r\n`)
  return responses.flatMap(({ status, body }) => (status === 200 ? [status, body] : [status]))
}

it.each([
  ["GET /api/v1/prompts?a=/../b", [200, "/api/v1/prompts"]],
  ["GET /api/v1/a/..//[::/../..//%ff%00", [200, "/api/v1//%ff%00"]],
  ["GET /api/v1/../../docs", [404]],
  ["GET /api/v1/%2e%2e/..%2f../docs", [404]],
  ["GET /api/v1/..\\..\\docs", [404]],
  ["GET /api/v1/../../healthz?/api/v1/", [404]],
  ["GET //api/v1/prompts", [404]],
  ["GET http://[/api/v1/", [400]],
  ["TRACE /api/v1/prompts", [405]],
  ["OPTIONS *", [405]],
  ["nonsense", [400]],
  // Node closes the connection.
  ["CONNECT /api/v1/prompts", []]
])(
  "toNodeListener passes only normalized paths below its prefix to the handler: %s gets %j",
  async (line, response) => {
    expect(await send(line)).toEqual(response)
  }
)

it("toNodeListener serves only the paths below a given prefix", async () => {
  expect(await send("GET /prompts/api/v1/x", "/prompts/")).toEqual([200, "/prompts/api/v1/x"])
  expect(await send("GET /api/v1/x", "/prompts/")).toEqual([404])
})

it.each<readonly [string, (response: ServerResponse, client: Socket) => unknown]>([
  ["the host has responded first", (response) => response.writeHead(503).end()],
  [
    "the client has disconnected",
    ({ req }, client) => {
      client.resetAndDestroy()
      return new Promise((resolve) => req.socket.on("close", resolve))
    }
  ]
])("the promise of toNodeListener resolves even if %s", async (_, end) => {
  const served = Promise.withResolvers<void>()
  const port = await listen((request, response) => {
    const respond = async () => {
      await end(response, client)
      return new Response("late")
    }
    served.resolve(toNodeListener(respond)(request, response))
  })
  const client = connect(port, "127.0.0.1").on("error", () => {})
  client.write(rawRequest("/api/v1/prompts"))
  await expect(served.promise).resolves.toBeUndefined()
  client.destroy()
})
