import { createServer, request as send } from "node:http"
import * as Effect from "effect/Effect"
import { listenOnFreePort } from "../ports.ts"

/** Starts a proxy that adds an API key to every request, for tools that cannot send a key. Returns the proxy's URL. */
export const authorizingProxy = (target: { readonly port: number }, key: string) => {
  const server = createServer((request, response) => {
    const { url: path, method, headers } = request
    const forwarded = send(
      {
        host: "127.0.0.1",
        port: target.port,
        path,
        method,
        headers: { ...headers, authorization: `Bearer ${key}` }
      },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers)
        response.flushHeaders()
        answer.pipe(response)
      }
    )
    forwarded.on("error", () => response.destroy())
    response.on("close", () => forwarded.destroy())
    request.pipe(forwarded)
  })
  return Effect.map(listenOnFreePort(server), (port) => `http://127.0.0.1:${port}`)
}
