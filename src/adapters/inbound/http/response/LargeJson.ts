import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import { largeBytes, nextTurn } from "../../../../application/LargeWork.ts"

/** The UTF-16 code units of a large text that are encoded in one turn of the event loop. */
const textSliceLength = 32 * 1024
/** The bytes of a large body that are hashed in one turn of the event loop. */
const hashSliceBytes = 256 * 1024

type Json = unknown

const isLargeText = (value: Json): boolean => typeof value === "string" && value.length > largeBytes

const isObject = (value: Json): value is Readonly<Record<string, Json>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Returns true if an envelope holds a single resource with a large text. */
export const holdsLargeText = (envelope: Json): boolean =>
  isObject(envelope) && isObject(envelope.data) && Object.values(envelope.data).some(isLargeText)

/** Returns the end of the slice that begins at `start`. No slice ends within a surrogate pair. */
const findSliceEnd = (text: string, start: number): number => {
  const end = Math.min(start + textSliceLength, text.length)
  const last = text.charCodeAt(end - 1)
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end - 1 : end
}

/** A buffer that grows as text is appended. */
class GrowingBuffer {
  #bytes: Buffer
  #length = 0

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity)
  }

  append(text: string): void {
    this.#reserve(3 * text.length)
    this.#length += this.#bytes.write(text, this.#length)
  }

  /** Appends a slice of a text to a JSON string that is not closed yet: escaped, without the slice's quotes. */
  appendEscaped(slice: string): void {
    const json = JSON.stringify(slice)
    this.#reserve(3 * json.length)
    // The opening quote overwrites the last byte, which is then restored.
    const start = this.#length - 1
    const last = this.#bytes[start]!
    this.#length = start + this.#bytes.write(json, start) - 1
    this.#bytes[start] = last
  }

  toBytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(this.#bytes.length + (this.#bytes.length >> 1) + count)
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

const findLargeTexts = (value: Json): ReadonlyArray<string> =>
  isObject(value) ? (Object.values(value).filter(isLargeText) as ReadonlyArray<string>) : []

/**
 * Encodes an envelope as UTF-8 JSON, byte for byte as `JSON.stringify` does. Encodes the large texts of its resource slice
 * by slice, and lets the event loop handle everything else between two slices.
 */
export const encodeInSlices = (envelope: Json): Effect.Effect<Uint8Array> =>
  Effect.gen(function* () {
    const { data } = envelope as { readonly data: Json }
    const size = findLargeTexts(data).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    const output = new GrowingBuffer(size + (size >> 4) + 4 * textSliceLength)
    const encodeObject = function* (
      object: Json,
      encodeMember: (member: Json) => Generator<Effect.Effect<void>, void>
    ): Generator<Effect.Effect<void>, void> {
      let separator = "{"
      for (const [name, member] of Object.entries(object as object)) {
        if (member === undefined) continue
        output.append(`${separator}${JSON.stringify(name)}:`)
        yield* encodeMember(member)
        separator = ","
      }
      output.append("}")
    }
    const encodeMember = function* (member: Json): Generator<Effect.Effect<void>, void> {
      if (!isLargeText(member)) return output.append(JSON.stringify(member))
      const text = member as string
      output.append('"')
      for (let start = 0; start < text.length; ) {
        const end = findSliceEnd(text, start)
        output.appendEscaped(text.slice(start, end))
        start = end
        yield nextTurn
      }
      output.append('"')
    }
    const encodeAll = encodeObject(envelope, (member) =>
      member === data ? encodeObject(data, encodeMember) : encodeMember(member)
    )
    for (const turn of encodeAll) yield* turn
    return output.toBytes()
  })

/** Returns the SHA-256 of a large body in base64url, computed slice by slice. */
export const hashInSlices = (body: Uint8Array): Effect.Effect<string> =>
  Effect.gen(function* () {
    const hash = createHash("sha256")
    for (let start = 0; start < body.length; start += hashSliceBytes) {
      yield* nextTurn
      hash.update(body.subarray(start, start + hashSliceBytes))
    }
    return hash.digest("base64url")
  })
