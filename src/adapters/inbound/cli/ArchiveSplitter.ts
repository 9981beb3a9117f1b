import { isWorkspaceList, type RawPart } from "../../../application/formats/RawPart.ts"
import { findStringEnd, isPlainScalar, parseJson } from "../../../domain/Json.ts"
import type { WorkspaceList } from "../../../domain/WorkspaceParts.ts"

/** What comes next in the text. A step reads it; `end` is the end of the text. */
type Step =
  | "root"
  | "first name"
  | "name"
  | "colon"
  | "member"
  | "after member"
  | "first item"
  | "item"
  | "after item"
  | "end"

const blank = /[ \n\r\t]*/y
/** A scalar, or characters that are not JSON, which `JSON.parse` rejects. */
const scalar = /[^ \n\r\t,\]}]+/y

/** Returns the index after what a sticky pattern matches at `at`. */
const skip = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  pattern.test(text)
  return pattern.lastIndex
}

/** The end of a value, and whether all of its scalars are plain. */
interface ValueEnd {
  readonly index: number
  readonly isExact: boolean
}

/** Finds the end of the value that starts at `at`. Returns `undefined` if the text may end before the value does. */
const findValueEnd = (text: string, at: number): ValueEnd | undefined => {
  let depth = 0
  let isExact = true
  for (let index = at; index < text.length; index++) {
    switch (text[index]) {
      case '"':
        index = findStringEnd(text, index + 1)
        if (index === -1) return undefined
        break
      case "[":
      case "{":
        depth++
        break
      case "]":
      case "}":
        depth--
        break
      case " ":
      case "\n":
      case "\r":
      case "\t":
      case ":":
      case ",":
        break
      default: {
        const end = skip(scalar, text, index)
        if (end === text.length) return undefined
        isExact &&= isPlainScalar(text.slice(index, end))
        index = end - 1
      }
    }
    if (depth <= 0) return { index: index + 1, isExact }
  }
  return undefined
}

/**
 * Splits the text of an archive into its parts, which `JSON.parse` then parses: much faster than a parser that reads
 * the text token by token. Throws if the text is not JSON, without saying what is wrong, and if a value is too long.
 */
export class ArchiveSplitter {
  /** The text that is not split yet, and the text that arrived after it. */
  #text = ""
  #arrived: Array<string> = []
  #arrivedLength = 0
  #step: Step = "root"
  /** The name of the current member and, if it is a list, the number of its items so far. */
  #member = ""
  #items = 0
  #parts: Array<RawPart> = []
  readonly #maxValueLength: number

  /** @param maxValueLength the longest value that is split off, in characters */
  constructor(maxValueLength: number) {
    this.#maxValueLength = maxValueLength
  }

  /** Adds text. Returns the parts that are now complete. */
  write(text: string): ReadonlyArray<RawPart> {
    this.#arrived.push(text)
    this.#arrivedLength += text.length
    // The end of a long value is searched for only when the text has doubled, so that the time stays linear.
    return this.#arrivedLength < this.#text.length ? [] : this.#split()
  }

  /** Ends the text. Returns the last parts. */
  end(): ReadonlyArray<RawPart> {
    const parts = this.#split()
    if (this.#step !== "end") throw new SyntaxError("the text ends early")
    return parts
  }

  #split(): ReadonlyArray<RawPart> {
    const text = this.#text + this.#arrived.join("")
    this.#arrived = []
    this.#arrivedLength = 0
    let at = skip(blank, text, 0)
    while (at < text.length) {
      const end = this.#read(text, at)
      if (end === -1) break
      at = skip(blank, text, end)
    }
    this.#text = text.slice(at)
    if (this.#text.length > this.#maxValueLength) throw new SyntaxError("a value is too long")
    const parts = this.#parts
    this.#parts = []
    return parts
  }

  /** Reads one step at `at`. Returns the index after it, or -1 if more text is needed. */
  #read(text: string, at: number): number {
    const character = text[at]
    switch (this.#step) {
      case "root":
        return this.#expect(character === "{", "first name", at)
      case "first name":
        if (character === "}") return this.#endRoot(at)
        return this.#readName(text, at)
      case "name":
        return this.#readName(text, at)
      case "colon":
        return this.#expect(character === ":", "member", at)
      case "member":
        if (character === "[" && isWorkspaceList(this.#member)) {
          this.#items = 0
          return this.#expect(true, "first item", at)
        }
        return this.#readValue(text, at, [this.#member], "after member")
      case "after member":
        if (character === "}") return this.#endRoot(at)
        return this.#expect(character === ",", "name", at)
      case "first item":
        return character === "]" ? this.#endList(at) : this.#readItem(text, at)
      case "item":
        return this.#readItem(text, at)
      case "after item":
        return character === "]" ? this.#endList(at) : this.#expect(character === ",", "item", at)
      case "end":
        throw new SyntaxError("text follows the root")
    }
  }

  #expect(isPresent: boolean, next: Step, at: number): number {
    if (!isPresent) throw new SyntaxError("unexpected character")
    this.#step = next
    return at + 1
  }

  #readName(text: string, at: number): number {
    if (text[at] !== '"') throw new SyntaxError("a name is missing")
    const end = findValueEnd(text, at)
    if (end === undefined) return -1
    this.#member = JSON.parse(text.slice(at, end.index))
    this.#step = "colon"
    return end.index
  }

  #readItem(text: string, at: number): number {
    const list = this.#member as WorkspaceList
    const end = this.#readValue(text, at, [list, this.#items], "after item")
    if (end !== -1) this.#items++
    return end
  }

  #readValue(text: string, at: number, path: RawPart["path"], next: Step): number {
    const end = findValueEnd(text, at)
    if (end === undefined) return -1
    this.#parts.push({ path, value: parseJson(text.slice(at, end.index), end.isExact) })
    this.#step = next
    return end.index
  }

  #endList(at: number): number {
    this.#parts.push({ path: [this.#member], value: [] })
    this.#step = "after member"
    return at + 1
  }

  #endRoot(at: number): number {
    this.#parts.push({ path: [], value: {} })
    this.#step = "end"
    return at + 1
  }
}
