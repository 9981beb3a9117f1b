import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { parsePromptId, parseUuid, Uuid } from "../../src/domain/Prompt.ts"

const digits = (length: number) =>
  Arbitrary.map(
    Arbitrary.array(Arbitrary.schema(Schema.Literals([..."0123456789abcdefABCDEF"])), {
      minLength: length,
      maxLength: length
    }),
    (chars) => chars.join("")
  )
const uuid = Arbitrary.map(Arbitrary.all([8, 4, 4, 4, 12].map(digits)), (groups) => groups.join("-"))

describe("parseUuid", () => {
  it.prop(
    "parseUuid accepts 8-4-4-4-12 hexadecimal digits in any letter case and returns lowercase",
    { uuid },
    ({ uuid }) => {
      const lower = uuid.toLowerCase()
      assert.strictEqual(parseUuid(uuid), lower)
      assert.strictEqual(parsePromptId(uuid), lower)
      assert.strictEqual(Schema.is(Uuid)(uuid), uuid === lower)
      assert.isTrue(Schema.is(Uuid)(lower))
    }
  )

  it.prop(
    "parseUuid returns undefined when one character is wrong, missing or added",
    {
      uuid,
      at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 35 })),
      wrong: Schema.Literals([
        "",
        "g",
        "G",
        "00",
        "--",
        " ",
        "\n",
        "\0",
        "_",
        "%",
        "{",
        "０",
        "é",
        "\u212a",
        "İ"
      ])
    },
    ({ uuid, at, wrong }) => {
      assert.strictEqual(parseUuid(uuid.slice(0, at) + wrong + uuid.slice(at + 1)), undefined)
      if (wrong !== "") assert.strictEqual(parseUuid(uuid + wrong), undefined)
    }
  )

  it.prop("parseUuid returns undefined for other spellings of a UUID", { uuid }, ({ uuid }) => {
    for (const text of [
      `{${uuid}}`,
      uuid.replaceAll("-", ""),
      uuid.replaceAll("-", "\u2010"),
      `urn:uuid:${uuid}`,
      ` ${uuid}`,
      `${uuid}\n`,
      `"${uuid}"`,
      uuid.slice(0, 13) + uuid.slice(14),
      `${uuid.replace("-", "")}-`,
      `${uuid.slice(0, 4)}-${uuid.slice(4, 8)}${uuid.slice(9)}`
    ]) {
      assert.strictEqual(parseUuid(text), undefined, text)
    }
  })
})
