/**
 * The cheapest possible HTTP server on Node: a `node:http` server that responds to every request with one response, which it
 * reads from stdin and which the service sent before.
 */
import { createServer } from "node:http"
import { json } from "node:stream/consumers"

export interface FixedResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const { status, headers, body } = (await json(process.stdin)) as FixedResponse
const bytes = Buffer.from(body)

createServer((_request, response) => {
  response.writeHead(status, headers)
  response.end(bytes)
}).listen(Number(process.env.PORT), "127.0.0.1")
