import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { parametersOf } from "../../src/adapters/http/Query.ts"

const names = Schema.Literals(["a", "page", "__proto__", "constructor", "toString", ""])

it.prop(
  "a query's parameters are all their values, in order",
  { pairs: Schema.Array(Schema.Struct({ name: names, value: Schema.String })) },
  ({ pairs }) => {
    const query = new URLSearchParams(pairs.map(({ name, value }): [string, string] => [name, value]))
    const parameters = parametersOf(query.toString())
    assert.deepStrictEqual(Object.keys(parameters).toSorted(), [...new Set(query.keys())].toSorted())
    for (const name of names.literals)
      assert.deepStrictEqual([parameters[name] ?? []].flat(), query.getAll(name))
  }
)

it("a query that starts with a question mark has it in its first name", () => {
  assert.deepStrictEqual({ ...parametersOf("?page=2&page=3") }, { "?page": "2", page: "3" })
  assert.deepStrictEqual({ ...parametersOf("??page=2") }, { "??page": "2" })
})
