import { once } from "node:events"
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** What happens to one request instead of being passed on. */
export type Fault = (request: IncomingMessage, response: ServerResponse) => void

/** A server between a client and a service: it passes requests on, unless a fault is next. */
export interface FaultProxy {
  readonly url: string
  /** The faults to come, one a request. */
  readonly faults: Array<Fault>
  /** The requests so far. */
  readonly requests: Array<{ readonly url: string; readonly headers: IncomingMessage["headers"] }>
  readonly close: () => Promise<void>
}

const passOn = (target: string, incoming: IncomingMessage, outgoing: ServerResponse): void => {
  const { method, headers } = incoming
  const onwards = request(new URL(incoming.url!, target), { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode!, answer.headers)
    answer.pipe(outgoing)
  })
  onwards.on("error", () => outgoing.destroy())
  onwards.end()
}

export const startFaultProxy = async (target: string): Promise<FaultProxy> => {
  const faults: Array<Fault> = []
  const requests: Array<{ readonly url: string; readonly headers: IncomingMessage["headers"] }> = []
  const server = createServer((incoming, outgoing) => {
    requests.push({ url: incoming.url!, headers: incoming.headers })
    const fault = faults.shift()
    if (fault === undefined) passOn(target, incoming, outgoing)
    else fault(incoming, outgoing)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults,
    requests,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, "close")
    }
  }
}
