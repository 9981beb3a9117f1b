import { createServer, type IncomingHttpHeaders, request as send } from "node:http"
import { listenOnFreePort } from "./ports.ts"

interface Forwarding {
  /** Returns the headers that replace the headers of a request or of a response. */
  readonly request?: (headers: IncomingHttpHeaders) => IncomingHttpHeaders | Promise<IncomingHttpHeaders>
  readonly response?: (headers: IncomingHttpHeaders) => IncomingHttpHeaders
}

/** Starts an HTTP proxy that changes headers. Returns its port. Closing the scope stops the proxy. */
export const forwardingProxy = (
  { port }: { readonly port: number },
  { request = (headers) => headers, response = (headers) => headers }: Forwarding
) =>
  listenOnFreePort(
    createServer(async (received, sent) => {
      const { url: path, method } = received
      const headers = await request(received.headers)
      const forwarded = send({ host: "127.0.0.1", port, path, method, headers }, (answer) => {
        sent.writeHead(answer.statusCode!, response(answer.headers))
        sent.flushHeaders()
        answer.pipe(sent)
      })
      forwarded.on("error", () => sent.destroy())
      sent.on("close", () => forwarded.destroy())
      received.pipe(forwarded)
    })
  )
