/** A number of JSON that no JavaScript number holds exactly; `JSON.stringify` writes `rawJSON` as it is. */
export interface ExactNumber {
  readonly rawJSON: string
}

/** Node.js 20 lacks these functions: there, all numbers are JavaScript numbers. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  readonly rawJSON?: (text: string) => ExactNumber
  readonly isRawJSON?: (value: unknown) => boolean
}

export const isExactNumber = (value: unknown): value is ExactNumber =>
  typeof value === "object" && value !== null && isRawJSON?.(value) === true

/** PostgreSQL's `numeric` holds this many digits before and after the decimal point. */
const maxIntegerDigits = 131_072
const maxFractionDigits = 16_383

/** A decimal number: `digits` times ten to the power of `exponent`. */
interface Decimal {
  readonly negative: boolean
  /** Neither begins nor ends with 0; empty for zero. */
  readonly digits: string
  readonly exponent: number
  /** How many digits the number has after the decimal point once it is written without an exponent. */
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

/** Whether PostgreSQL writes both texts as the same number with the same digits. */
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

/**
 * A JavaScript number where it means what the text of a JSON number means, to the last digit after the decimal point;
 * otherwise an `ExactNumber` with this text.
 */
export const parseNumber = (text: string): number | ExactNumber => {
  const number = Number(text)
  if (rawJSON === undefined || String(number) === text) return number
  // Zero has no sign in PostgreSQL.
  return Number.isFinite(number) && isSameDecimal(text, String(number)) ? number + 0 : rawJSON(text)
}

/** Whether PostgreSQL can store a number. */
export const isStorableNumber = (text: string): boolean => {
  const decimal = parseDecimal(text)
  return (
    decimal !== undefined &&
    decimal.scale <= maxFractionDigits &&
    decimal.digits.length + decimal.exponent <= maxIntegerDigits
  )
}

/**
 * Writes a decimal number as PostgreSQL does: without an exponent, a plus sign or zeros before the number. Gives
 * `undefined` for text that is no such number, or that PostgreSQL cannot store.
 */
export const toDecimal = (text: string): string | undefined => {
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

/** Finds a number that may not be exact: 16 digits or more, a 0 at the end of a fraction, or an exponent. */
const maybeInexact = /(?:^|[\s:,[])-?(?:\d{16}|(?=[\d.]{17})\d+\.|\d+\.\d*0(?!\d)|\d+(?:\.\d+)?[eE])/

/** Finds a name with an escape sequence. */
const escapedName = /[{,]\s*"[^"\\]*\\/

/** The index of the quotation mark that ends a string of JSON; `at` is an index within the string. */
export const endOfString = (text: string, at: number): number => {
  for (let end = text.indexOf('"', at); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text[end - 1 - slashes] === "\\") slashes++
    if (slashes % 2 === 0) return end
  }
}

/** The value of a string of JSON, given without its quotation marks. */
export const stringOf = (raw: string): string => (raw.includes("\\") ? JSON.parse(`"${raw}"`) : raw)

const isDelimiter = /[\s,\]}]/g

/** Parses text that is known to be JSON, with exact numbers. Nesting takes no stack. */
const parseExactly = (text: string): unknown => {
  const root: Array<unknown> = []
  const containers: Array<Array<unknown> | Record<string, unknown>> = [root]
  let container = containers[0]!
  let name: string | undefined
  const add = (value: unknown): void => {
    if (Array.isArray(container)) container.push(value)
    else if (name !== "__proto__") container[name!] = value
    else
      Object.defineProperty(container, name, { value, writable: true, enumerable: true, configurable: true })
    name = undefined
  }
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case " ":
      case "\n":
      case "\r":
      case "\t":
      case ",":
      case ":":
        break
      case "{":
      case "[": {
        const inner = text[at] === "{" ? {} : []
        add(inner)
        containers.push(inner)
        container = inner
        break
      }
      case "}":
      case "]":
        containers.pop()
        container = containers.at(-1)!
        break
      case '"': {
        const end = endOfString(text, at + 1)
        const string = stringOf(text.slice(at + 1, end))
        if (name === undefined && !Array.isArray(container)) name = string
        else add(string)
        at = end
        break
      }
      case "t":
        add(true)
        at += 3
        break
      case "f":
        add(false)
        at += 4
        break
      case "n":
        add(null)
        at += 3
        break
      default: {
        isDelimiter.lastIndex = at
        const end = isDelimiter.exec(text)?.index ?? text.length
        add(parseNumber(text.slice(at, end)))
        at = end - 1
      }
    }
  }
  return root[0]
}

/**
 * Parses JSON as `JSON.parse` does, but reads every number as `parseNumber` does. It also reads names with escape
 * sequences right, which `JSON.parse` may not (nodejs/node#63785).
 */
export const parseJson = (text: string): unknown => {
  const value = JSON.parse(text)
  const isRight = !maybeInexact.test(text) && !(text.includes("\\") && escapedName.test(text))
  return isRight ? value : parseExactly(text)
}

/**
 * The same value with JavaScript numbers only, the nearest ones. Each object and array that had an `ExactNumber` within
 * it has a `toJSON` method, which is not enumerable, so that `JSON.stringify` still writes the exact numbers.
 */
export const toPlainNumbers = <A>(value: A): A => toPlain(value) as A

const toPlain = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (isExactNumber(value)) return Number(value.rawJSON)
  const plain = new Map<string, unknown>()
  // A loop, not a method with a function: deep values need one stack frame for each level.
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
