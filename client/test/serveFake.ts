import type { FakeService } from "../src/testing.ts"
import { type Fault, listen } from "./FaultyServer.ts"

/** Starts an HTTP server that responds as a fake service, except for requests that `fault` handles. */
export const serveFake = (
  service: FakeService,
  fault: (...args: Parameters<Fault>) => boolean = () => false
) =>
  listen(async (request, response) => {
    if (fault(request, response)) return
    const controller = new AbortController()
    response.on("close", () => controller.abort())
    const headers = request.headers as Record<string, string>
    const init = { method: "GET", headers, redirect: "manual", signal: controller.signal } as const
    const answer = (await service.fetch(`http://host${request.url}`, init)) as Response
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  })
