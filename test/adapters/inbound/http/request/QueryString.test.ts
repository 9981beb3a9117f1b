import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { parseQuery } from "../../../../../src/adapters/inbound/http/Endpoints.ts"

const names = Schema.Literals(["a", "page", "__proto__", "constructor", "toString", ""])

it.prop(
  "parseQuery returns all values of every parameter, in order",
  { pairs: Schema.Array(Schema.Struct({ name: names, value: Schema.String })) },
  ({ pairs }) => {
    const query = new URLSearchParams(pairs.map(({ name, value }): [string, string] => [name, value]))
    const parameters = parseQuery(query.toString())
    assert.deepStrictEqual(Object.keys(parameters).toSorted(), [...new Set(query.keys())].toSorted())
    for (const name of names.literals)
      assert.deepStrictEqual([parameters[name] ?? []].flat(), query.getAll(name))
  }
)

it("parseQuery treats a leading question mark as a part of the first parameter's name", () => {
  assert.deepStrictEqual({ ...parseQuery("?page=2&page=3") }, { "?page": "2", page: "3" })
  assert.deepStrictEqual({ ...parseQuery("??page=2") }, { "??page": "2" })
})
