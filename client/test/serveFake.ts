import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { FakeService } from "../src/testing.ts"

export type Handler<A = void> = (request: IncomingMessage, response: ServerResponse) => A

/** Starts an HTTP server on a free port of the loopback interface. */
export const listen = async (handle: Handler) => {
  const server = createServer(handle)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, "close")
    }
  }
}

/** Starts an HTTP server that responds as a fake service, except for requests that `fault` handles. */
export const serveFake = (service: FakeService, fault: Handler<boolean> = () => false) =>
  listen(async (request, response) => {
    if (fault(request, response)) return
    const controller = new AbortController()
    response.on("close", () => controller.abort())
    const headers = request.headers as Record<string, string>
    const init = { method: "GET", headers, redirect: "manual", signal: controller.signal } as const
    const answer = (await service.fetch(`http://host${request.url}`, init)) as Response
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  })
