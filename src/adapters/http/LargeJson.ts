import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import { largeBytes, nextTurn } from "../../application/LargeWork.ts"

/** How much of a large value is encoded or hashed in one turn of the event loop. */
const textSlice = 32 * 1024
const hashSlice = 256 * 1024

type Json = unknown

const isLargeText = (value: Json): boolean => typeof value === "string" && value.length > largeBytes

const isObject = (value: Json): value is Readonly<Record<string, Json>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Whether the one resource in an envelope has a large text. */
export const holdsLargeText = (envelope: Json): boolean =>
  isObject(envelope) && isObject(envelope.data) && Object.values(envelope.data).some(isLargeText)

/** The end of the slice of a text that begins at `start`. No slice ends within a surrogate pair. */
const sliceEnd = (text: string, start: number): number => {
  const end = Math.min(start + textSlice, text.length)
  const last = text.charCodeAt(end - 1)
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end - 1 : end
}

/** Bytes that grow at their end. What is unused of `bytes` is at most a sixteenth of a large text. */
class Output {
  #bytes: Buffer
  #length = 0

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity)
  }

  write(text: string): void {
    this.#reserve(3 * text.length)
    this.#length += this.#bytes.write(text, this.#length)
  }

  /** Writes a slice of a text as the next part of a JSON string. The quotes around the slice do not stay. */
  writeEscaped(slice: string): void {
    const json = JSON.stringify(slice)
    this.#reserve(3 * json.length)
    const start = this.#length - 1
    const last = this.#bytes[start]!
    this.#length = start + this.#bytes.write(json, start) - 1
    this.#bytes[start] = last
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(this.#bytes.length + (this.#bytes.length >> 1) + count)
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

const largeTexts = (value: Json): ReadonlyArray<string> =>
  isObject(value) ? (Object.values(value).filter(isLargeText) as ReadonlyArray<string>) : []

/**
 * The UTF-8 JSON of an envelope, byte for byte that of `JSON.stringify`. The large texts of its resource are encoded
 * slice by slice, and every other event is handled between two slices.
 */
export const encodeInSlices = (envelope: Json): Effect.Effect<Uint8Array> =>
  Effect.gen(function* () {
    const { data } = envelope as { readonly data: Json }
    const size = largeTexts(data).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    const output = new Output(size + (size >> 4) + 4 * textSlice)
    const encodeObject = function* (
      object: Json,
      encodeMember: (member: Json) => Generator<Effect.Effect<void>, void>
    ): Generator<Effect.Effect<void>, void> {
      let separator = "{"
      for (const [name, member] of Object.entries(object as object)) {
        if (member === undefined) continue
        output.write(`${separator}${JSON.stringify(name)}:`)
        yield* encodeMember(member)
        separator = ","
      }
      output.write("}")
    }
    const encodeMember = function* (member: Json): Generator<Effect.Effect<void>, void> {
      if (!isLargeText(member)) return output.write(JSON.stringify(member))
      const text = member as string
      output.write('"')
      for (let start = 0; start < text.length; ) {
        const end = sliceEnd(text, start)
        output.writeEscaped(text.slice(start, end))
        start = end
        yield nextTurn
      }
      output.write('"')
    }
    const encodeAll = encodeObject(envelope, (member) =>
      member === data ? encodeObject(data, encodeMember) : encodeMember(member)
    )
    for (const turn of encodeAll) yield* turn
    return output.bytes()
  })

/** The SHA-256 of a large body in base64url, computed slice by slice. */
export const hashInSlices = (body: Uint8Array): Effect.Effect<string> =>
  Effect.gen(function* () {
    const hash = createHash("sha256")
    for (let start = 0; start < body.length; start += hashSlice) {
      yield* nextTurn
      hash.update(body.subarray(start, start + hashSlice))
    }
    return hash.digest("base64url")
  })
