import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { onTestFinished } from "vitest"
import { makeResources } from "../../test/support/makeResources.ts"
import { listenOnFreePort } from "../../test/support/network/ports.ts"
import type { FakeService } from "../src/testing.ts"

export type Handler<A = void> = (request: IncomingMessage, response: ServerResponse) => A

/**
 * Starts an HTTP server that responds as a fake service, except for requests that `fault` handles, until the end of the
 * current test. Returns its URL.
 */
export const serveFake = async (service: FakeService, fault: Handler<boolean> = () => false) => {
  const server = createServer(async (request, response) => {
    if (fault(request, response)) return
    const controller = new AbortController()
    response.on("close", () => controller.abort())
    const headers = request.headers as Record<string, string>
    const init = { method: "GET", headers, redirect: "manual", signal: controller.signal } as const
    const answer = (await service.fetch(`http://host${request.url}`, init)) as Response
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  })
  const { acquire, release } = makeResources()
  onTestFinished(release)
  return `http://127.0.0.1:${await acquire(listenOnFreePort(server))}`
}
