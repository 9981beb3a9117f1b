import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import {
  type HeaderFields,
  type HttpRequest,
  makeEntityHeaders,
  toRawHeaders
} from "../../contract/HttpMessage.ts"
import { chooseContentCoding, type ContentCoding, contentCodings } from "../request/ContentCoding.ts"
import { type Representation, toRepresentation, withEtag } from "./Representation.ts"

/**
 * A page that does not change while the process runs: its representation without a content coding, and a representation
 * for each coding. Each representation has its own ETag.
 */
export type StaticPage = Readonly<Record<ContentCoding | "identity", Representation>>

const compress: Readonly<Record<ContentCoding, (body: Uint8Array) => Promise<Uint8Array>>> = {
  // With the default quality, the compression of `/docs` takes seconds.
  br: (body) => promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: (body) => promisify(gzip)(body)
}

/** Makes a page from its text, and compresses the page in each coding. Compression runs in other threads. */
export const makeStaticPage = async (
  text: string,
  contentType: string,
  headers: HeaderFields = {}
): Promise<StaticPage> => {
  const caching = toRawHeaders({ "cache-control": "no-cache", vary: "Accept-Encoding", ...headers })
  const represent = (body: Uint8Array, contentEncoding: HeaderFields): Representation => {
    const entityHeaders = { ...makeEntityHeaders(body, contentType), ...contentEncoding }
    return toRepresentation(withEtag(body), entityHeaders, caching, { isPermanent: true })
  }
  const identity = Buffer.from(text)
  const coded = await Promise.all(
    contentCodings.map(
      async (coding) =>
        [coding, represent(await compress[coding](identity), { "content-encoding": coding })] as const
    )
  )
  return {
    identity: represent(identity, {}),
    ...(Object.fromEntries(coded) as Record<ContentCoding, Representation>)
  }
}

/** Returns the page in the content coding that the request prefers. */
export const selectRepresentation = ({ headers }: HttpRequest, page: StaticPage): Representation =>
  page[chooseContentCoding(headers["accept-encoding"]) ?? "identity"]
