import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { parseBearerToken } from "../../../../../src/adapters/inbound/http/request/Authorization.ts"

const visible = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).filter(
  (char) => char !== ","
)
const token = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Literals(visible)), { minLength: 1, maxLength: 100 }),
  (chars) => chars.join("")
)
const scheme = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Boolean), { minLength: 6, maxLength: 6 }),
  (upper) => [..."bearer"].map((char, index) => (upper[index] === true ? char.toUpperCase() : char)).join("")
)

describe("parseBearerToken", () => {
  it.prop(
    "returns the token after the scheme in any case and one or more spaces",
    { scheme, token, spaces: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 })) },
    ({ scheme, token, spaces }) => {
      assert.strictEqual(parseBearerToken(scheme + " ".repeat(spaces) + token), token)
    }
  )

  it.prop(
    "returns undefined unless one token of visible ASCII follows the scheme",
    {
      token,
      wrong: Schema.Literals([",", " ", "\t", "\n", "\r", "\0", "\u007f", "\u0080", "é", "\u00a0", "😀"]),
      at: Schema.Natural
    },
    ({ token, wrong, at }) => {
      const split = (at % token.length) + 1
      const header = `Bearer ${token.slice(0, split)}${wrong}${token.slice(split)}`
      assert.isUndefined(parseBearerToken(header))
    }
  )

  it.each([
    undefined,
    "",
    " ",
    "Bearer",
    "Bearer ",
    "Bearer  ",
    "Bearerx",
    "Bearer\tx",
    "Bearer \tx",
    " Bearer x",
    "\nBearer x",
    "Basic x",
    "Bearers x",
    "XBearer x",
    "bea\u0280er x",
    "x",
    "Bearer x, Bearer y",
    "Bearer x,",
    "Bearer x y",
    "Bearer x\n"
  ])("returns undefined for %j", (header) => {
    assert.isUndefined(parseBearerToken(header))
  })
})
