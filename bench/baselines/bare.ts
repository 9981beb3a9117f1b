/**
 * The least that HTTP on Node can cost: a `node:http` server that writes one answer, given on stdin, to whatever it is
 * asked. Status, headers and bytes are those of the service, read from it before.
 */
import { createServer } from "node:http"
import { json } from "node:stream/consumers"

/** One answer, whole. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const { status, headers, body } = (await json(process.stdin)) as Answer
const bytes = Buffer.from(body)

createServer((_request, response) => {
  response.writeHead(status, headers)
  response.end(bytes)
}).listen(Number(process.env.PORT), "127.0.0.1")
