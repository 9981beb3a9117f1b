import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import { newId } from "../../../test/support/archives.ts"
import { nameConstants } from "../../src/pull/Identifiers.ts"
import { describeRenames, readNames, renderTypes } from "../../src/pull/TypesFile.ts"
import { anyText } from "./bundles.ts"

const titles = Arbitrary.array(anyText, { maxLength: 12 })
const toPrompts = (titles: ReadonlyArray<string>) =>
  titles.map((title) => ({ id: newId<string>(), name: title, title, slots: [title] }))

const name = (...titles: ReadonlyArray<string>) => [...nameConstants(toPrompts(titles)).values()]

/** Returns true if a constant with this name can be declared in an ES module and in a CommonJS module. */
const isValidName = (name: string): boolean => {
  try {
    new Function(
      "module",
      "exports",
      "require",
      `"use strict"; { async () => { const ${name} = 1; return ${name} } }`
    )
    return /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u.test(name)
  } catch {
    return false
  }
}

describe("nameConstants", () => {
  it.prop(
    "nameConstants gives every prompt a valid and unique name, whatever the titles and the order of the prompts",
    { titles },
    ({ titles }) => {
      const prompts = toPrompts(titles)
      const names = nameConstants(prompts)
      assert.deepStrictEqual([...names.keys()].toSorted(), prompts.map(({ id }) => id).toSorted())
      assert.strictEqual(new Set(names.values()).size, prompts.length)
      for (const name of names.values()) assert.isTrue(isValidName(name), name)
      for (const [id, name] of nameConstants(prompts.toReversed())) assert.strictEqual(names.get(id), name)
    },
    { arbitrary: { runs: 1_000 } }
  )

  it.prop(
    "an added prompt never takes over the name of another prompt",
    { titles, title: anyText },
    ({ titles, title }) => {
      const prompts = toPrompts(titles)
      const [added] = toPrompts([title])
      const names = new Set(nameConstants(prompts).values())
      assert.isFalse(names.has(nameConstants([...prompts, added!]).get(added!.id)!))
    }
  )

  it("nameConstants converts titles to camel case", () => {
    const examples = {
      "Support agent": "supportAgent",
      "support-agent (v2)": "supportAgentV2",
      supportAgent: "supportAgent",
      "FAQ bot": "faqBot",
      "HTML5 parser": "html5Parser",
      HTMLParser: "htmlParser",
      "3 tips": "_3Tips",
      Delete: "delete_",
      await: "await_",
      Module: "module_",
      "Équipe de l'été": "équipeDeLÉté",
      "日本語 の プロンプト": "日本語のプロンプト",
      "Служба поддержки": "службаПоддержки"
    }
    for (const [title, expected] of Object.entries(examples)) assert.deepStrictEqual(name(title), [expected])
  })

  it("nameConstants adds 8 or more digits of the id to equal names and to the names of titles without letters and digits", () => {
    const prompts = [
      { id: "cef02dd3-514f-5723-8852-d3305a2e66a8", title: "Support agent" },
      { id: "cef02dd3-614f-5723-8852-d3305a2e66a8", title: "support Agent" },
      { id: "2ab10e69-adc5-54f8-bc21-f905cbf73c5d", title: "😀" }
    ]
    assert.deepStrictEqual(
      [...nameConstants(prompts).values()],
      ["supportAgent_cef02dd35", "supportAgent_cef02dd36", "prompt_2ab10e69"]
    )
  })
})

describe("prompts.ts", () => {
  it.prop(
    "prompts.ts contains the constant, the id and the name of every prompt, whatever the titles and slots",
    { titles },
    ({ titles }) => {
      const prompts = toPrompts(titles)
      const text = renderTypes(prompts)
      assert.deepStrictEqual([...readNames(text)].toSorted(), [...nameConstants(prompts)].toSorted())
      const names = [...text.matchAll(/^ {2}name: (.*),$/gm)].map(([, name]) => JSON.parse(name!))
      assert.deepStrictEqual(names.toSorted(), prompts.map(({ name }) => name).toSorted())
      assert.isFalse(
        /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/u.test(text),
        "no character controls a terminal or an editor"
      )
    }
  )

  it("describeRenames reports prompts with a new name, and names that now belong to another prompt", () => {
    const before = new Map([
      ["id1", "a"],
      ["id2", "b"],
      ["id3", "c"]
    ])
    const after = new Map([
      ["id1", "b"],
      ["id2", "x"],
      ["id3", "c"],
      ["id4", "d"]
    ])
    assert.deepStrictEqual(describeRenames(before, after), [
      "renamed: a is now b (prompt id1)",
      "renamed: b is now x (prompt id2)",
      "reassigned: b was prompt id2 and is now prompt id1"
    ])
    assert.deepStrictEqual(describeRenames(before, before), [])
  })
})
