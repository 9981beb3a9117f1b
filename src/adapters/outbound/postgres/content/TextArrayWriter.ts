/** The header of an array: the number of its dimensions, a flag for nulls, the type of its elements, its length and its first index. */
const headerLength = 20
const textOid = 25

const initialCapacity = 4_096

/** Longer texts are measured; for shorter ones, the most bytes that they can have are reserved. */
const maxUnmeasuredLength = 4_096

/** Writes an array of texts and nulls in the binary format of PostgreSQL's `text[]`, element by element. */
export class TextArrayWriter {
  #bytes = Buffer.allocUnsafe(initialCapacity)
  #length = headerLength
  #count = 0
  #hasNull = false

  /** Adds an element. Returns the number of bytes that it takes. */
  add(text: string | null): number {
    this.#count++
    if (text === null) {
      this.#hasNull = true
      this.#reserve(4)
      this.#length = this.#bytes.writeInt32BE(-1, this.#length)
      return 4
    }
    this.#reserve(4 + (text.length > maxUnmeasuredLength ? Buffer.byteLength(text) : 3 * text.length))
    const written = this.#bytes.write(text, this.#length + 4)
    this.#bytes.writeInt32BE(written, this.#length)
    this.#length += 4 + written
    return 4 + written
  }

  /** Returns the array, which the next change of the writer invalidates. */
  read(): Uint8Array {
    const header = [1, this.#hasNull ? 1 : 0, textOid, this.#count, 1]
    for (const [index, value] of header.entries()) this.#bytes.writeInt32BE(value, 4 * index)
    return this.#bytes.subarray(0, this.#length)
  }

  /** Starts an empty array. */
  clear(): void {
    this.#length = headerLength
    this.#count = 0
    this.#hasNull = false
  }

  #reserve(length: number): void {
    const required = this.#length + length
    if (required <= this.#bytes.length) return
    const bytes = Buffer.allocUnsafe(Math.max(required, 2 * this.#bytes.length))
    this.#bytes.copy(bytes, 0, 0, this.#length)
    this.#bytes = bytes
  }
}
