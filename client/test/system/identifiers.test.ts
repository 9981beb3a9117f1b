import { createRequire } from "node:module"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { toolsDirectory } from "../../../test/support/programs/tools.ts"
import { nameConstants } from "../../src/pull/Identifiers.ts"

/** Returns the name of the constant for a prompt with this title. */
const name = (title: string): string => {
  const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"
  const [constant] = nameConstants([{ id, title }]).values()
  return constant!
}

it("the names of the constants from pull contain only characters that TypeScript 5.4 accepts", () => {
  const ts = createRequire(join(toolsDirectory, "package.json"))("typescript-5.4")
  for (let code = 0; code <= 0xffff; code++) {
    const generated = name(`a${String.fromCharCode(code)}`)
    for (const character of generated) {
      assert.isTrue(ts.isIdentifierPart(character.codePointAt(0), ts.ScriptTarget.ES5), generated)
    }
    const first = name(String.fromCharCode(code))
    assert.isTrue(ts.isIdentifierStart(first.codePointAt(0), ts.ScriptTarget.ES5), first)
  }
})
