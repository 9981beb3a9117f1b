import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { parsePromptFiles } from "../../../src/application/transfer/PromptFile.ts"
import { newId } from "../../support/archives.ts"

/** Returns the problems of a prompt file with this front matter: the line, if it is known, and the message. */
const findProblems = (frontMatter: string) => {
  const result = parsePromptFiles(
    newId(),
    new Map([
      ["prompts/a.md", `---\n${frontMatter}\n---\nText`],
      ["fragments/tone.md", "Kind"]
    ])
  )
  return Result.isFailure(result)
    ? result.failure.problems.map(({ path, message }) =>
        [path.replace(/^prompts\/a\.md:?/, ""), message].filter((text) => text !== "").join(" ")
      )
    : []
}

describe("errors of front matter", () => {
  it.each([
    ["title: Summary: short", '2 put quotes around the value: title: "Summary: short"'],
    ["title: a: b: c", '2 put quotes around the value: title: "a: b: c"'],
    ['title: "Summary" short', '2 put quotes around the value: title: "\\"Summary\\" short"'],
    ["type: user\ntitle: @home", '3 put quotes around the value: title: "@home"'],
    ["title: - x", '2 put quotes around the value: title: "- x"'],
    ["title: *important*", "put quotes around a value that begins with *"],
    ["title: 12", 'title: must be a text: put quotes around the value, such as "12"'],
    ["title: {{name}}", 'title: must be a text: put quotes around the value, such as "{{name}}"'],
    ["tags: [2026]", 'tags.0: must be a text: put quotes around the value, such as "2026"'],
    ["title:", "title: has no value: add a text, or remove the line"],
    [
      "title Summary",
      'the front matter must have lines with a key, a colon and a space, such as "title: Summary"'
    ],
    [
      "title: x\n  model: y",
      "2 the key and its value must be on one line, and each key must begin at the start of its line"
    ],
    ["title: x\n\tmodel: y", "3 replace the tabs at the start of the line with spaces"],
    ["favorite: yes", "favorite: must be true or false, without quotes"],
    ["sort_order: high", "sort_order: must be a whole number without quotes, such as 1"],
    ["fragments: tone", 'fragments: must be a list with lines such as "- fragment: tone"'],
    ["fragments:\n- tone", 'fragments.0: must be a list with lines such as "- fragment: tone"'],
    [
      "fragments:\n- fragment: tone\n  with: kind",
      'fragments.0.with: must have lines such as "tone: friendly"'
    ],
    ["with: {}", "the key with does not belong here"]
  ])("the front matter %j has one error: %s", (frontMatter, problem) => {
    assert.deepStrictEqual(findProblems(frontMatter), [problem])
  })

  it("the text that an error suggests is valid", () => {
    for (const frontMatter of ["title: Summary: short", 'title: "Summary" short', "title: @home"]) {
      const [problem = ""] = findProblems(frontMatter)
      assert.deepStrictEqual(findProblems(problem.slice(problem.indexOf("title: "))), [])
    }
  })
})
