import { findTokenEnd, isExactNumber, parseScalar, parseStringBody, findToken } from "./Json.ts"

/** The text of valid JSON that is too large to parse at once. */
export class JsonText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Returns the text that fills a slot bound to this value, or `undefined` if a slot cannot be bound to it. */
export const toSlotText = (value: unknown): string | undefined => {
  switch (typeof value) {
    case "string":
      return value
    case "number":
    case "boolean":
      return String(value)
    default:
      return isExactNumber(value) ? value.rawJSON : undefined
  }
}

/** The number of maps that share the entries. One large map would copy all of its entries at once when it grows. */
const shardCount = 64

const shardIndex = (name: string): number => {
  const { length } = name
  return (length + 7 * name.charCodeAt(length >> 1) + 31 * name.charCodeAt(length - 1)) % shardCount
}

/** A map from names to places in a text. */
class PlaceMap {
  readonly #shards: ReadonlyArray<Map<string, number>> = Array.from({ length: shardCount }, () => new Map())

  get(name: string): number | undefined {
    return this.#shards[shardIndex(name)]?.get(name)
  }

  set(name: string, place: number): void {
    this.#shards[shardIndex(name)]?.set(name, place)
  }

  delete(name: string): void {
    this.#shards[shardIndex(name)]?.delete(name)
  }
}

/** The bindings of a large JSON object, located in its text step by step. */
export class Bindings {
  readonly #text: string
  readonly #places = new PlaceMap()
  #at = 0
  #depth = 0
  /** The name whose value comes next. */
  #name: string | undefined

  constructor({ text }: JsonText) {
    this.#text = text.trimStart().startsWith("{") ? text : ""
  }

  /** Reads at least `units` code units, or all that are left. Returns the number of code units read. */
  read(units: number): number {
    const text = this.#text
    const start = this.#at
    while (this.#at < text.length && this.#at - start < units) this.#readToken(text)
    return this.#at - start
  }

  get isRead(): boolean {
    return this.#at >= this.#text.length
  }

  /** Returns the text that fills the slot of this name, or `undefined` if the name has no binding. */
  get(name: string): string | undefined {
    const at = this.#places.get(name)
    if (at === undefined) return undefined
    return toSlotText(parseScalar(this.#text, at, findTokenEnd(this.#text, at)))
  }

  #readToken(text: string): void {
    const at = findToken(text, this.#at)
    const end = findTokenEnd(text, at)
    switch (text[at]) {
      case "{":
      case "[":
        this.#depth++
        // The last of several values of a name counts, and an object or array binds nothing.
        if (this.#name !== undefined) this.#places.delete(this.#name)
        this.#name = undefined
        break
      case "}":
      case "]":
        this.#depth--
        break
      default:
        if (this.#depth !== 1) break
        if (this.#name === undefined) {
          this.#name = parseStringBody(text.slice(at + 1, end - 1))
        } else {
          this.#places.set(this.#name, at)
          this.#name = undefined
        }
    }
    this.#at = end
  }
}
