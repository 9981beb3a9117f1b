import { assert, describe, it } from "@effect/vitest"
import {
  isExactNumber,
  isStorableNumber,
  parseJson,
  parseNumber,
  formatDecimal,
  toPlainNumbers
} from "../../src/domain/Json.ts"
import { jsonMaps, numberTexts } from "../support/json.ts"

/** Returns what PostgreSQL stores of a number: all digits as one integer, and the number of digits after the point. */
const parseDecimal = (text: string): { readonly units: bigint; readonly scale: number } => {
  const [mantissa = "", power = "0"] = text.toLowerCase().split("e")
  const [integer = "", fraction = ""] = mantissa.split(".")
  const scale = fraction.length - Number(power)
  const units = BigInt(integer + fraction)
  return scale < 0 ? { units: units * 10n ** BigInt(-scale), scale: 0 } : { units, scale }
}

const toText = (value: unknown): string => (isExactNumber(value) ? value.rawJSON : String(value))

/** The model of `parseJson`: a simple parser that returns numbers as texts, and objects as lists of members. */
const parseByModel = (text: string): unknown => {
  let at = 0
  const token = (pattern: RegExp): string => {
    const [found = ""] = new RegExp(pattern, "y").exec(text.slice(at)) ?? []
    at += found.length
    return found
  }
  const list = <A>(end: string, item: () => A): ReadonlyArray<A> => {
    const items: Array<A> = []
    at++
    for (token(/\s*/); text[at] !== end; token(/\s*,?\s*/)) items.push(item())
    at++
    return items
  }
  const string = (): string => JSON.parse(`[${token(/"(?:[^"\\]|\\.)*"/)}]`)[0]
  const value = (): unknown => {
    token(/\s*/)
    if (text[at] === "[") return list("]", value)
    if (text[at] === '"') return string()
    if (text[at] !== "{") {
      const scalar = token(/[^\s,\]}]+/)
      return /\d/.test(scalar) ? { number: scalar } : JSON.parse(scalar)
    }
    const members = list("}", () => {
      const name = string()
      token(/\s*:/)
      return [name, value()] as const
    })
    // Of several members with the same name, only the last value counts. The order of members does not count.
    return { members: [...new Map(members)].sort(([a], [b]) => (a < b ? -1 : 1)) }
  }
  return value()
}

/** Converts a parsed value to the form that `parseByModel` returns. */
const markNumbers = (value: unknown): unknown => {
  if (typeof value === "number" || isExactNumber(value)) return { number: toText(value) }
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(markNumbers)
  const members = Object.entries(value).map(([name, member]) => [name, markNumbers(member)] as const)
  return { members: members.sort(([a], [b]) => (a < b ? -1 : 1)) }
}

/** Compares numbers by value and scale, and all other values exactly. */
const assertSame = (a: unknown, b: unknown): void => {
  const decimals = (_: string, value: { readonly number?: unknown } | null): unknown => {
    if (typeof value?.number !== "string") return value
    const { units, scale } = parseDecimal(value.number)
    return `${units}/${scale}`
  }
  assert.deepStrictEqual(JSON.stringify(a, decimals), JSON.stringify(b, decimals))
}

describe("parseNumber", () => {
  it.prop(
    "parseNumber keeps the value and the scale of every number",
    { text: numberTexts },
    ({ text }) => assert.deepStrictEqual(parseDecimal(toText(parseNumber(text))), parseDecimal(text)),
    { arbitrary: { runs: 1500 } }
  )

  it.prop(
    "parseNumber returns a JavaScript number if and only if String(number) has the value and scale of the input",
    { text: numberTexts },
    ({ text }) => {
      const nearest = Number(text)
      const isSame =
        Number.isFinite(nearest) &&
        parseDecimal(String(nearest)).units === parseDecimal(text).units &&
        parseDecimal(String(nearest)).scale === parseDecimal(text).scale
      assert.strictEqual(typeof parseNumber(text) === "number", isSame)
      if (isSame) assert.strictEqual(parseNumber(text), nearest + 0)
    },
    { arbitrary: { runs: 1500 } }
  )
})

describe("formatDecimal", () => {
  it.prop(
    "formatDecimal formats every number without an exponent, with the same value and scale",
    { text: numberTexts },
    ({ text }) => {
      const written = formatDecimal(text)!
      assert.match(written, /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/)
      assert.deepStrictEqual(parseDecimal(written), parseDecimal(text))
    },
    { arbitrary: { runs: 1500 } }
  )

  it.each([
    ["+1.50", "1.50"],
    ["007", "7"],
    [".5", "0.5"],
    ["5.", "5"],
    ["-0.0", "0.0"],
    ["1e3", "1000"],
    ["1e-3", "0.001"],
    ["", undefined],
    [".", undefined],
    ["-", undefined],
    ["abc", undefined],
    ["1e131072", undefined]
  ])("formatDecimal formats %j as %j", (text, expected) => assert.strictEqual(formatDecimal(text), expected))
})

describe("isStorableNumber", () => {
  it.each([
    ["1e131071", true],
    ["1e131072", false],
    ["0.0001e131075", true],
    ["1e-16383", true],
    ["1e-16384", false],
    ["0e-16384", false],
    ["1.5e-16383", false],
    ["9".repeat(131_072), true],
    ["9".repeat(131_073), false],
    ["1e99999999999999999999", false]
  ])("isStorableNumber returns whether PostgreSQL can store %.20s", (text, expected) =>
    assert.strictEqual(isStorableNumber(text), expected)
  )
})

describe("parseJson", () => {
  it.prop(
    "parseJson keeps every number, name and value of a JSON text",
    { text: jsonMaps },
    ({ text }) => {
      assertSame(markNumbers(parseJson(text)), parseByModel(text))
      assertSame(parseByModel(JSON.stringify(parseJson(text))), parseByModel(text))
    },
    { arbitrary: { runs: 1500 } }
  )

  it.each(["", "{", "[1.10,]", "01.10", '{"a":1.10}x', "1.", ".50"])("parseJson throws for %j", (text) => {
    assert.throws(() => parseJson(text), SyntaxError)
  })

  it("parseJson reads a name with an escape sequence correctly even after JSON.parse has read a backslash as a name", () => {
    JSON.parse('{"": 0, "\\\\": 1}')
    assert.deepStrictEqual(parseJson('{"": 0, "\\n": 1.10}'), { "": 0, "\n": parseNumber("1.10") })
    assert.deepStrictEqual(parseJson('{"a": [{"": 0, "\\u0041": 1}]}'), { a: [{ "": 0, A: 1 }] })
  })

  it("parseJson parses an array that nests 6,000 levels deep, without a stack overflow", () => {
    const deep = `${"[".repeat(6000)}1.10${"]".repeat(6000)}`
    assert.isArray(parseJson(deep))
  })
})

describe("toPlainNumbers", () => {
  const hasExact = (value: unknown): boolean =>
    isExactNumber(value) ||
    (typeof value === "object" && value !== null && Object.values(value).some(hasExact))

  it.prop(
    "toPlainNumbers returns only JavaScript numbers, and JSON.stringify still writes their exact digits",
    { text: jsonMaps },
    ({ text }) => {
      const exact = { data: parseJson(text) }
      const plain = toPlainNumbers(exact)
      assert.isFalse(hasExact(plain))
      assert.strictEqual(JSON.stringify(plain), JSON.stringify(exact))
      if (!hasExact(exact)) assert.strictEqual(plain, exact)
    },
    { arbitrary: { runs: 2000 } }
  )

  it("toPlainNumbers replaces each exact number with the nearest JavaScript number", () => {
    const plain = toPlainNumbers(parseJson('{"a": 1234567890123456789, "b": [1.10, 1e400], "c": {"d": 0.1}}'))
    assert.deepStrictEqual(plain, {
      a: 1234567890123456800,
      b: [1.1, Number.POSITIVE_INFINITY],
      c: { d: 0.1 }
    })
    assert.strictEqual(JSON.stringify((plain as { b: unknown }).b), "[1.10,1e400]")
  })
})
