import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** Handles one request in place of the server's normal response. */
export type Fault = (request: IncomingMessage, response: ServerResponse) => void

/** A server that responds to every request with the same prompt, unless a fault handles the request. */
export interface FaultyServer {
  readonly url: string
  /** The queue of faults. Each request removes one fault from the queue. */
  readonly faults: Array<Fault>
  /** Paths of the requests so far. */
  readonly requests: Array<string>
  readonly close: () => Promise<void>
}

/** Starts an HTTP server on a free port of the loopback interface. */
export const listen = async (handle: Fault) => {
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

export const startFaultyServer = async (): Promise<FaultyServer> => {
  const faults: Array<Fault> = []
  const requests: Array<string> = []
  const server = await listen((request, response) => {
    requests.push(request.url!)
    const fault = faults.shift()
    if (fault !== undefined) return fault(request, response)
    response.writeHead(200, { "content-type": "application/json" }).end('{"data":{"title":"Support agent"}}')
  })
  return { ...server, faults, requests }
}
