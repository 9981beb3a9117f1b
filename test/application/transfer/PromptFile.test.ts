import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { hashState } from "../../../src/application/transfer/Pairing.ts"
import { type PromptFile, parseFiles } from "../../../src/application/transfer/PromptFile.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { archive, newId, toWorkspaceContent } from "../../support/archives.ts"
import { fileDefaults, pairFiles } from "../../support/promptFiles.ts"

const parse = (files: Record<string, string>) => parseFiles(new Map(Object.entries(files)))

/** Returns the path and the message of each problem. */
const findProblems = (files: Record<string, string>): ReadonlyArray<string> =>
  Result.match(parse(files), {
    onSuccess: () => [],
    onFailure: ({ problems }) => problems.map(({ path, message }) => `${path} ${message}`)
  })

const parsePrompt = (text: string, path = "prompts/a.md") => {
  const [file] = Result.getOrThrow(parse({ [path]: text })) as [PromptFile]
  if (file.state.kind !== "prompt") throw new Error("The file describes no prompt")
  return file.state
}

describe("a prompt file", () => {
  it.each(["---\n---\n", ""])(
    "if the front matter of a file is %j, the title, name and folder come from the path of the file, and all other fields have defaults",
    (front) => {
      const fragment = { kind: "fragment", name: "tone", content: "Kind" } as const
      const own = { folder: "Support", title: "hello", current_content: "Hello {{name}}" }
      const prompt = { kind: "prompt", ...fileDefaults, ...own, tags: [], fragments: [] } as const
      assert.deepStrictEqual(
        parse({
          "prompts/Support/hello.md": `${front}Hello {{name}}\n`,
          "fragments/tone.md": `${front}Kind`
        }),
        Result.succeed([
          { path: "fragments/tone.md", file_id: null, state: fragment },
          { path: "prompts/Support/hello.md", file_id: null, state: prompt }
        ])
      )
    }
  )

  it.each([
    ["prompts/a.md", "", null],
    ["prompts/%2Ex%3A/50%25/a.md", "", ".x:/50%"],
    ["prompts/100%/a.md", "", "100%"],
    ["prompts/a/b.md", "---\nfolder: c/d\n---\n", "c/d"],
    ["prompts/a/b.md", "---\nfolder: null\n---\n", null],
    ["prompts/a/b.md", `---\nfolder: ${"😀".repeat(256)}\n---\n`, "😀".repeat(256)]
  ])(
    "the folder of a prompt is the percent-decoded path between prompts/ and the file name, unless the front matter has a folder: %s, %j",
    (path, text, folder) => {
      assert.strictEqual(parsePrompt(text, path).folder, folder)
    }
  )

  it.each([
    ["a\n", "a"],
    ["", ""],
    ["\n", ""],
    ["---\n---\n\n---\n", "\n---"],
    ["\n--- not front matter\n", "\n--- not front matter"],
    ["--- not front matter\n", "--- not front matter"],
    ["\ufeffa\r\nb\r\n", "a\nb"],
    ["a\nb\r\n", "a\nb\r"],
    ["---\n---\na\n\n", "a\n"],
    ["---\n---", ""],
    ["---\n---\n---\n", "---"],
    ["---\n---\r\na\r\n", "a\r"],
    ["---\r\n---\r\na\r\nb\r\n", "a\nb"],
    ["\ufeff---\n---\na\n", "a"],
    ["--- \ntitle: x\n--- \na\n", "a"]
  ])("the file %j has the body %j", (text, body) => {
    assert.strictEqual(parsePrompt(text).current_content, body)
  })

  it.each(["\n---\ntitle: x\n---\n", "\ufeff\r\n \n---\r\n---\r\n", " ---\n---\n", "\n---"])(
    "the file %j is invalid, because white space precedes the front matter",
    (text) => {
      assert.deepStrictEqual(findProblems({ "prompts/a.md": text }), [
        "prompts/a.md:1 the line of --- that opens the front matter must be the first line: remove what precedes it"
      ])
    }
  )

  it.each([
    ["title: Summary: short", ':2 put quotes around the value: title: "Summary: short"'],
    ['title: "Summary" short', ':2 put quotes around the value: title: "\\"Summary\\" short"'],
    ["title: *important*", " put quotes around a value that begins with *"],
    [
      "title: x\n  model: y",
      ":2 the key and its value must be on one line, and each key must begin at the start of its line"
    ],
    ["title: x\ntitle: y", ":3 is not valid YAML: Map keys must be unique"],
    ["title: 12", ' title: must be a text: put quotes around the value, such as "12"'],
    ["title Summary", ' must have lines with a key, a colon and a space, such as "title: Summary"'],
    ["favorite: yes", " favorite: must be true or false, without quotes"],
    ["sort_order: high", " sort_order: must be a whole number without quotes, such as 1"],
    ["tags: x", " tags: must be a list, such as [production, draft]"],
    ["type: poem", " type: must be one of system, user, assistant, template, few-shot, chain-of-thought"],
    ["folder: 1", " folder: must be a text, or null for no folder"],
    [
      "fragments:\n- fragment: tone\n  wiht: {}",
      " fragments.0.wiht: unknown key; the keys are fragment, with"
    ],
    [
      "id: 7f",
      ' id: must be a UUID, such as "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51", or the earlier path of a file that was moved'
    ]
  ])("the front matter %j has one problem, whose message says what to write instead: %s", (text, problem) => {
    const texts = { "prompts/a.md": `---\n${text}\n---\nText`, "fragments/tone.md": "Kind" }
    assert.deepStrictEqual(findProblems(texts), [`prompts/a.md${problem}`])
  })

  it("parseFiles fails with the problems of all invalid files", () => {
    const aliases = ["ba", "cb", "dc", "ed", "fe", "gf"].map(
      ([name, of]) => `${name}: &${name} [${Array(9).fill(`*${of}`).join(", ")}]\n`
    )
    assert.deepStrictEqual(
      findProblems({
        "prompts/a.md": "---\ntitle: x\n",
        "prompts/a/a.md": `---\nfolder: ${"x".repeat(257)}\n---\n`,
        "prompts/b.md": `---\ntitle: ${"x".repeat(257)}\ntype: poem\n---\n`,
        "prompts/c.md": "---\nfragments:\n  - fragment: none\n---\n",
        "prompts/d.md": "---\n---\n\0",
        "prompts/e.md": `---\na: &a [${Array(9).fill("x").join(", ")}]\n${aliases.join("")}---\n`,
        "fragments/a.md": `---\ntitle: x\n---\n`
      }),
      [
        "fragments/a.md title: unknown key; the keys are id, name",
        "prompts/a.md:1 the front matter has no end: add a line of ---",
        "prompts/a/a.md the folder's name must be at most 256 characters",
        "prompts/b.md title: must be at most 256 characters",
        "prompts/b.md type: must be one of system, user, assistant, template, few-shot, chain-of-thought",
        "prompts/c.md fragments: there is no file fragments/none.md",
        "prompts/d.md body: must not contain the NUL character",
        "prompts/e.md Excessive alias count indicates a resource exhaustion attack"
      ]
    )
  })
})

describe("the id of a prompt or fragment", () => {
  const dns = "6ba7b810-9dad-11d1-80b4-00c04fd430c8" as WorkspaceId
  const findIds = (workspace: WorkspaceId, files: Record<string, string>) =>
    pairFiles(workspace, toWorkspaceContent(archive()), new Map(Object.entries(files))).map(({ id }) => id)

  it("the UUID of a prompt or fragment is uuid5(workspace, name), where name is the lowercase id in the file or, without an id, the path of the file", () => {
    const text = "---\nid: 6F1F0C2E-6F6E-4A57-9D9E-0B6F2F1B7A51\n---\n"
    // From Python's uuid.uuid5(uuid.NAMESPACE_DNS, "prompts/a.md").
    assert.deepStrictEqual(findIds(dns, { "prompts/a.md": "" }), ["c2d19c60-d282-505f-b715-725fed8a8eb0"])
    // From Python's uuid.uuid5(uuid.NAMESPACE_DNS, "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51").
    const id = "588a3ed8-548f-5a88-8b24-e7a442567981"
    assert.deepStrictEqual(findIds(dns, { "prompts/a.md": text, "fragments/a.md": text }), [id, id])
  })

  it("a prompt or fragment keeps its UUID in every workspace if its file moves and has the earlier path as its id", () => {
    const paths = ["prompts/Old/a b.md", "fragments/old.md"]
    const moved = paths.map((path) => [path.replace(/\/.*/, "/new/a.md"), `---\nid: ${path}\n---\nx`])
    for (const home of [dns, newId<WorkspaceId>()])
      assert.deepStrictEqual(
        findIds(home, Object.fromEntries(moved)),
        findIds(home, Object.fromEntries(paths.map((path) => [path, "x"])))
      )
    for (const id of ["fragments/a.md", "prompts/a", "a.md"])
      assert.lengthOf(findProblems({ "prompts/b.md": `---\nid: ${id}\n---\n` }), 1)
  })
})

it("hashState returns the same hash in every version of the program, whatever the order of the members of free-form JSON", () => {
  const hashPrompt = (variable_overrides: Readonly<Record<string, unknown>>) =>
    hashState({
      ...fileDefaults,
      kind: "prompt",
      folder: "Support",
      title: "Agent",
      description: "d",
      current_content: "One",
      is_favorite: true,
      sort_order: 1,
      tags: ["a", "b"],
      fragments: [{ fragment_id: "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51", variable_overrides }]
    })
  const hash = "dbc1694d463fc4a32af9aae5eddd4203ffd57ade2d2950f7490c6751026bee77"
  assert.strictEqual(hashPrompt({ b: 1, a: "x" }), hash)
  assert.strictEqual(hashPrompt({ a: "x", b: 1 }), hash)
  assert.strictEqual(
    hashState({ kind: "fragment", name: "Tone", content: "Kind" }),
    "c260dcd08b93dfe4c9a84eeb178cf266a7c6db00b3b3440c49103b9d196d81f6"
  )
})
