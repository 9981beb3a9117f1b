/**
 * The cheapest HTTP server on Node: a `node:http` server that sends the same response to every request. The server
 * reads this response, which the service sent before, from stdin.
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
