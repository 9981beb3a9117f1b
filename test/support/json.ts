import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"

/** JSON numbers, some of which a JavaScript number cannot represent. */
export const awkwardNumbers = [
  "1234567890123456789",
  "9007199254740993",
  "1e400",
  "-1e400",
  "1e-400",
  "1.10",
  "0.1",
  "-0",
  "-0.00",
  "0e5",
  "1E5",
  "1.50e2",
  "1.5e-10",
  "12345678901234567890.123456789",
  "1e21",
  "1e-7",
  "5e-324",
  "1.7976931348623157e308",
  "0.30000000000000004",
  "0.300000000000000040",
  "9007199254740992",
  "100000000000000000000",
  "123456789012345680000"
]

const int = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

const digits = Arbitrary.map(
  Arbitrary.array(int(0, 999), { maxLength: 8 }),
  (parts) => parts.join("").replace(/^0+(?=\d)/, "") || "0"
)

/** Generates JSON numbers with all kinds of digits and exponents. */
export const numberTexts: Arbitrary.Arbitrary<string> = Arbitrary.map(
  Arbitrary.all([int(0, 7), digits, Arbitrary.array(int(0, 99), { maxLength: 6 }), int(-40, 40)]),
  ([kind, integer, fraction, exponent]) => {
    if (kind === 7) return awkwardNumbers[(exponent + 40) % awkwardNumbers.length]!
    const point = (kind & 1) === 0 || fraction.length === 0 ? "" : `.${fraction.join("")}`
    const power = (kind & 2) === 0 ? "" : `${(kind & 4) === 0 ? "e" : "E"}${exponent}`
    return `${(kind & 4) === 0 ? "" : "-"}${integer}${point}${power}`
  }
)

const names = [
  "",
  "a",
  "b",
  "rawJSON",
  "toJSON",
  "__proto__",
  "x\\ny",
  "\\\\",
  "\\n",
  "\\u0041",
  '\\"',
  "1.10",
  "with"
]

const scalars = Arbitrary.map(
  Arbitrary.all([int(0, 5), numberTexts, Arbitrary.schema(Schema.String)]),
  ([kind, number, text]) =>
    kind < 4
      ? number
      : kind === 4
        ? JSON.stringify(text.replaceAll("\0", "").toWellFormed())
        : ["null", "true", "[]", "{}"][text.length % 4]!
)

const maps = (values: Arbitrary.Arbitrary<string>): Arbitrary.Arbitrary<string> =>
  Arbitrary.map(
    Arbitrary.array(Arbitrary.all([int(0, names.length - 1), values]), { maxLength: 4 }),
    (members) =>
      `{${members
        // A name may occur more than once: `JSON.parse` and jsonb both keep the last member with the name.
        .map(([name, value]) => `"${names[name]}": ${value}`)
        .join(", ")}}`
  )

const lists = (values: Arbitrary.Arbitrary<string>): Arbitrary.Arbitrary<string> =>
  Arbitrary.map(Arbitrary.array(values, { maxLength: 3 }), (items) => `[${items.join(",")}]`)

const either = (
  a: Arbitrary.Arbitrary<string>,
  b: Arbitrary.Arbitrary<string>,
  c: Arbitrary.Arbitrary<string>
) => Arbitrary.map(Arbitrary.all([int(0, 2), a, b, c]), ([pick, ...texts]) => texts[pick]!)

const values = either(scalars, lists(scalars), maps(either(scalars, lists(scalars), maps(scalars))))

/** Generates JSON objects with all kinds of numbers, names and nesting. */
export const jsonMaps: Arbitrary.Arbitrary<string> = maps(values)
