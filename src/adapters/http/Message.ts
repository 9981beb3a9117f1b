/** A request as whatever carries it has read it. */
export interface RequestMessage {
  readonly method: string
  /** The target as it was sent: nobody has tidied it. */
  readonly target: string
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** Whether it asks for what there is: nothing else is to be had here (DESIGN.md section 4.3). */
export const isRead = ({ method }: RequestMessage): boolean => method === "GET" || method === "HEAD"

/** An answer for whatever carries it to write; to a HEAD it leaves out the body. */
export interface Answer {
  readonly status: number
  /** Names and values in turn, as `writeHead` of `node:http` takes them. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array
  /** True if the body lives as long as the process, so that a response in flight holds no memory of its own. */
  readonly isShared?: boolean
}

export type HeaderFields = Readonly<Record<string, string>>

/** What an answer of one kind has in common: headers, once and for all in the form that is written. */
export const flat = (headers: HeaderFields): ReadonlyArray<string> => Object.entries(headers).flat()

/** The names and values of an answer's headers, a pair each. */
export const pairsOf = ({ headers }: Answer): Array<[string, string]> =>
  Array.from({ length: headers.length / 2 }, (_, i) => [headers[2 * i]!, headers[2 * i + 1]!])

/** The headers of a body. */
export const entityHeaders = (body: Uint8Array, contentType: string) => ({
  "content-type": contentType,
  "content-length": String(body.length)
})

/** An answer with the headers that every answer has (DESIGN.md section 5). */
export const identified = ({ status, headers, body, isShared }: Answer, requestId: string): Answer => ({
  status,
  headers: ["x-request-id", requestId, "x-content-type-options", "nosniff", ...headers],
  body,
  isShared: isShared === true
})
