/**
 * A JSON number with digits that are lost in a JavaScript number, such as the last digit of `1.0`. `JSON.stringify`
 * writes `rawJSON` as it is.
 */
export interface ExactNumber {
  readonly rawJSON: string
}

const { rawJSON, isRawJSON } = JSON as unknown as {
  readonly rawJSON: (text: string) => ExactNumber
  readonly isRawJSON: (value: unknown) => boolean
}

export const isExactNumber = (value: unknown): value is ExactNumber =>
  typeof value === "object" && value !== null && isRawJSON(value) === true

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns true for an object that is neither null nor an array. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The maximum numbers of digits before and after the decimal point in PostgreSQL's `numeric`. */
const maxIntegerDigits = 131_072
const maxFractionDigits = 16_383

/** A decimal number: `digits` times ten to the power of `exponent`. */
interface Decimal {
  readonly negative: boolean
  /** Digits without leading and trailing zeros; empty for zero. */
  readonly digits: string
  readonly exponent: number
  /** The number of digits after the decimal point when the number is written without an exponent. */
  readonly scale: number
}

const decimalPattern = /^([-+]?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d+))?$/

const parseDecimal = (text: string): Decimal | undefined => {
  const match = decimalPattern.exec(text)
  if (match === null) return undefined
  const [, sign, integer = "", fraction = "", power = "0"] = match
  const all = integer + fraction
  let start = 0
  let end = all.length
  while (end > 0 && all[end - 1] === "0") end--
  while (start < end && all[start] === "0") start++
  return {
    negative: sign === "-" && start < end,
    digits: all.slice(start, end),
    exponent: start === end ? 0 : Number(power) - fraction.length + (all.length - end),
    scale: Math.max(0, fraction.length - Number(power))
  }
}

/** Returns true if PostgreSQL writes the numbers `a` and `b` as the same text. */
const isSameDecimal = (a: string, b: string): boolean => {
  const [left, right] = [parseDecimal(a), parseDecimal(b)]
  return (
    left !== undefined &&
    right !== undefined &&
    left.digits === right.digits &&
    left.negative === right.negative &&
    left.exponent === right.exponent &&
    left.scale === right.scale
  )
}

/** Matches the letter of an exponent, or the y of `Infinity`. */
const exponentPattern = /[eEy]/

/**
 * Parses a JSON number. Returns a JavaScript number if that number keeps every digit of the text, including trailing
 * zeros of the fraction. Otherwise returns an `ExactNumber` with the text.
 */
export const parseNumber = (text: string): number | ExactNumber => {
  const number = Number(text)
  const shortest = String(number)
  if (shortest === text) return number
  // If neither text has an exponent, two different texts of a nonzero number have different digits or scales.
  if (number !== 0 && !exponentPattern.test(text) && !exponentPattern.test(shortest)) return rawJSON(text)
  // Adding 0 converts -0 to 0, because zero has no sign in PostgreSQL.
  return Number.isFinite(number) && isSameDecimal(text, shortest) ? number + 0 : rawJSON(text)
}

/** Returns true if PostgreSQL can store the number that a text denotes. */
export const isStorableNumber = (text: string): boolean => {
  const decimal = parseDecimal(text)
  return (
    decimal !== undefined &&
    decimal.scale <= maxFractionDigits &&
    decimal.digits.length + decimal.exponent <= maxIntegerDigits
  )
}

/**
 * Formats a decimal number in PostgreSQL's form: without an exponent, a plus sign or unneeded leading zeros. Returns
 * `undefined` for text that is not a decimal number or whose number PostgreSQL cannot store.
 */
export const formatDecimal = (text: string): string | undefined => {
  const decimal = parseDecimal(text)
  if (decimal === undefined || !/\d/.test(text) || !isStorableNumber(text)) return undefined
  const { negative, digits, exponent, scale } = decimal
  const integral = exponent >= 0 ? digits + "0".repeat(exponent) : digits
  const padded = (
    exponent >= 0 ? integral + "0".repeat(scale) : digits + "0".repeat(scale + exponent)
  ).padStart(scale + 1, "0")
  const point = padded.length - scale
  return `${negative ? "-" : ""}${padded.slice(0, point)}${scale === 0 ? "" : `.${padded.slice(point)}`}`
}

/**
 * Matches JSON that may contain a number that must become an `ExactNumber`: a number with 16 digits or more, with a
 * fraction that ends with 0, or with an exponent. Also matches some strings that contain such digits.
 */
const inexactPattern = /(?:^|["\s]:|[\s,[])-?(?:\d{16}|(?=[\d.]{17})\d+\.|\d+\.\d*0(?!\d)|\d+(?:\.\d+)?[eE])/

/**
 * Matches JSON that may have a member whose name contains an escape sequence. Also matches some strings that are not
 * names.
 */
const escapedNamePattern = /[{,]\s*"[^"\\]*\\/

/** Matches each token of valid JSON except commas and colons. */
const tokenPattern = /[{}[\]]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s,:{}[\]"]+/g

/**
 * Parses valid JSON, and parses its numbers with `parseNumber`. The parser is not recursive, so that deep nesting
 * cannot overflow the stack.
 */
const parseExactly = (text: string): unknown => {
  const root: Array<unknown> = []
  const containers: Array<Array<unknown> | Record<string, unknown>> = [root]
  let container: Array<unknown> | Record<string, unknown> = root
  let name: string | undefined
  const add = (value: unknown): void => {
    if (Array.isArray(container)) container.push(value)
    else if (name === "__proto__")
      Object.defineProperty(container, name, { value, writable: true, enumerable: true, configurable: true })
    else if (name !== undefined) container[name] = value
    name = undefined
  }
  for (const token of text.match(tokenPattern) ?? []) {
    switch (token) {
      case "{":
      case "[": {
        const inner = token === "{" ? {} : []
        add(inner)
        containers.push(inner)
        container = inner
        break
      }
      case "}":
      case "]":
        containers.pop()
        container = containers.at(-1) ?? root
        break
      default:
        if (name === undefined && !Array.isArray(container)) name = JSON.parse(token)
        else add(/^[-\d]/.test(token) ? parseNumber(token) : JSON.parse(token))
    }
  }
  return root[0]
}

/**
 * Parses JSON like `JSON.parse`, but returns an `ExactNumber` for each number with digits that are lost in a JavaScript
 * number. Also parses names with escape sequences correctly; `JSON.parse` has a bug with such names
 * (nodejs/node#63785).
 */
export const parseJson = (text: string): unknown => {
  const value = JSON.parse(text)
  const isExact = !inexactPattern.test(text) && !(text.includes("\\") && escapedNamePattern.test(text))
  return isExact ? value : parseExactly(text)
}

/**
 * Returns a copy of a value in which the nearest JavaScript number replaces each `ExactNumber`; returns the value
 * itself if it contains none. Each object or array of the copy that differs from its original has a non-enumerable
 * `toJSON` method, so that `JSON.stringify` still writes the exact numbers. An object that already has a member
 * `toJSON` does not get the method.
 */
export const toPlainNumbers = <A>(value: A): A => toPlain(value) as A

const toPlain = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (isExactNumber(value)) return Number(value.rawJSON)
  const plain = new Map<string, unknown>()
  // A loop instead of `map`: for each level of nesting, a loop takes one stack frame and `map` takes two.
  for (const [name, member] of Object.entries(value)) {
    const converted = toPlain(member)
    if (converted !== member) plain.set(name, converted)
  }
  if (plain.size === 0) return value
  const entries = Object.entries(value).map(([name, member]) => [name, plain.get(name) ?? member] as const)
  const copy = Array.isArray(value) ? entries.map(([, member]) => member) : Object.fromEntries(entries)
  if (!Object.hasOwn(copy, "toJSON")) Object.defineProperty(copy, "toJSON", { value: () => value })
  return copy
}
