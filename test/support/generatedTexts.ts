import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"

// Parts of generated prompts: slots, incomplete slots, and special characters of `String.replace`.

/** The longest name of a slot has 256 UTF-16 code units, including the blanks around the name. */
const longNames = [...[254, 255, 256, 257].map((length) => "x".repeat(length)), "😀".repeat(128)]

const names = ["a", "b", "tone", "__proto__", "constructor", "toString", "", "ä", "$&", "a b", ...longNames]

const pieces = [
  ...names.flatMap((name) => [`{{${name}}}`, `{{ ${name}\t}}`, name]),
  ...["{{", "}}", "{", "}", " ", "\n", "{{{a}}}", "{{a}", "{a}}", "{{a{b}}", "{{ }}", "$1", "\\", "😀"],
  ...["\u00a0", "{{\u00a0\ufeff\u2003}}"]
]

/** A text with slots. */
export const text = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Literals(pieces)), { maxLength: 12 }),
  (parts) => parts.join("")
)

const value = Arbitrary.map(
  Arbitrary.all([Arbitrary.schema(Schema.Natural), text, Arbitrary.schema(Schema.Json)]),
  ([kind, text, json]) => (kind % 2 === 0 ? text : json)
)

/** The values of some slots. */
export const overrides = Arbitrary.map(
  Arbitrary.array(Arbitrary.all([Arbitrary.schema(Schema.Literals(names)), value]), {
    maxLength: 12
  }),
  (entries): object => Object.fromEntries(entries)
)
