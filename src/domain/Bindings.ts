import { endOfString, isExactNumber, parseNumber, stringOf } from "./Json.ts"

/** The text of valid JSON that is too large to parse at once. */
export class JsonText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** The text that a value brings in; undefined for a value that is no binding. */
export const boundText = (value: unknown): string | undefined => {
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

/** Many small maps instead of a large one: each time a map grows, all of its entries move in one go. */
const shards = 64

const shardOf = (name: string): number => {
  const { length } = name
  return (length + 7 * name.charCodeAt(length >> 1) + 31 * name.charCodeAt(length - 1)) % shards
}

const scalar = /[^\s,\]}]+/y

/** The bindings of a JSON object, found in its text bit by bit. */
export class Bindings {
  readonly #text: string
  readonly #places: ReadonlyArray<Map<string, number>> = Array.from({ length: shards }, () => new Map())
  #at = 0
  #depth = 0
  /** The name whose value comes next. */
  #name: string | undefined

  constructor({ text }: JsonText) {
    this.#text = text.trimStart().startsWith("{") ? text : ""
  }

  /** Reads at least `units` code units if there are as many, and gives how many it has read. */
  read(units: number): number {
    const text = this.#text
    const start = this.#at
    while (this.#at < text.length && this.#at - start < units) this.#readToken(text)
    return this.#at - start
  }

  get isRead(): boolean {
    return this.#at >= this.#text.length
  }

  #readToken(text: string): void {
    switch (text[this.#at]) {
      case '"': {
        const end = endOfString(text, this.#at + 1)
        if (this.#depth === 1 && this.#name === undefined)
          this.#name = stringOf(text.slice(this.#at + 1, end))
        else this.#addValue()
        this.#at = end + 1
        break
      }
      case "{":
      case "[":
        this.#depth++
        // The last of several values of one name counts, and this one is no binding.
        if (this.#name !== undefined) this.#places[shardOf(this.#name)]?.delete(this.#name)
        this.#name = undefined
        this.#at++
        break
      case "}":
      case "]":
        this.#depth--
        this.#at++
        break
      case " ":
      case "\n":
      case "\r":
      case "\t":
      case ",":
      case ":":
        this.#at++
        break
      default:
        this.#addValue()
        this.#at += this.#scalarAt(this.#at).length
    }
  }

  #addValue(): void {
    if (this.#depth !== 1) return
    this.#places[shardOf(this.#name!)]?.set(this.#name!, this.#at)
    this.#name = undefined
  }

  #scalarAt(at: number): string {
    scalar.lastIndex = at
    return scalar.exec(this.#text)![0]
  }

  /** The text that a name is bound to. */
  get(name: string): string | undefined {
    const at = this.#places[shardOf(name)]?.get(name)
    if (at === undefined) return undefined
    if (this.#text[at] === '"') return stringOf(this.#text.slice(at + 1, endOfString(this.#text, at + 1)))
    const text = this.#scalarAt(at)
    switch (text) {
      case "null":
        return undefined
      case "true":
      case "false":
        return text
      default:
        return boundText(parseNumber(text))
    }
  }
}
