import * as Effect from "effect/Effect"
import { largeWork } from "../../../../application/LargeWork.ts"
import { encodeInSlices, holdsLargeText } from "./LargeJson.ts"

/** Encodes a text in separate memory. `Buffer.from` would put a small text into a pool, which a cached body pins. */
export const encodeText = (text: string): Uint8Array => {
  const body = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  body.write(text)
  return body
}

/** Encodes an envelope as JSON. A large text in the envelope is encoded slice by slice. */
export const encodeJson = (envelope: unknown): Effect.Effect<Uint8Array> =>
  holdsLargeText(envelope)
    ? largeWork.encode(encodeInSlices(envelope))
    : Effect.succeed(encodeText(JSON.stringify(envelope)))
