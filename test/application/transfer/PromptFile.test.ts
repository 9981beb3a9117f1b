import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { parsePromptFiles } from "../../../src/application/transfer/PromptFile.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { archives, newId, toWorkspaceContent } from "../../support/archives.ts"
import { findDifferences, firstPrompt, renderFiles } from "../../support/promptFiles.ts"

const read = (workspace: WorkspaceId, files: Record<string, string>) =>
  parsePromptFiles(workspace, new Map(Object.entries(files)))

const findProblems = (files: Record<string, string>) => {
  const result = read(newId(), files)
  return Result.isFailure(result) ? result.failure.problems : []
}

it.prop(
  "rendered files parse to the same prompts and fragments, and no path contains characters that a file system may reject",
  { generated: archives },
  ({ generated }) => {
    const fragments = generated.fragments.map((fragment) => ({
      ...fragment,
      name: fragment.content.slice(0, 256).toWellFormed() || "x"
    }))
    const archive = { ...generated, fragments }
    const texts = renderFiles(archive)
    const differences = findDifferences(archive.workspace.id, toWorkspaceContent(archive), texts)
    // A fragment has no file if only archived prompts contain it.
    assert.deepStrictEqual(
      differences.filter(({ kind, file }) => kind === "prompt" || file !== undefined),
      []
    )
    const segments = [...texts.keys()].flatMap((path) => path.split("/"))
    assert.deepStrictEqual(
      segments.filter((segment) => /^\.|^$|[. ]$|[\\:*?"<>|\p{Cc}]/u.test(segment)),
      []
    )
  }
)

describe("a prompt file", () => {
  const workspace = newId<WorkspaceId>()

  it.each([
    ["empty front matter", "---\n---\n"],
    ["no front matter", ""]
  ])(
    "the file of a prompt or a fragment may have %s: then id, title, name and folder come from the path, the content is the body, and all other fields have default values",
    (_, front) => {
      const files = {
        "prompts/Support/hello.md": `${front}Hello {{name}}\n`,
        "fragments/tone.md": `${front}Kind`
      }
      const first = Result.getOrThrow(read(workspace, files))
      assert.deepStrictEqual(first, [
        {
          path: "fragments/tone.md",
          file_id: null,
          id: first[0]!.id,
          state: { kind: "fragment", name: "tone", content: "Kind" }
        },
        {
          path: "prompts/Support/hello.md",
          file_id: null,
          id: first[1]!.id,
          state: {
            kind: "prompt",
            folder: "Support",
            title: "hello",
            description: "",
            current_content: "Hello {{name}}",
            prompt_type: "user",
            target_model: "",
            intent: "",
            is_favorite: false,
            sort_order: 0,
            tags: [],
            fragments: []
          }
        }
      ])
      assert.deepStrictEqual(read(workspace, files), Result.succeed(first))
      assert.notStrictEqual(
        Result.getOrThrow(read(newId(), files))[1]!.id,
        Result.getOrThrow(read(workspace, files))[1]!.id
      )
    }
  )

  it("a file without an id gets the version 5 UUID of its path in the namespace of its workspace", () => {
    const dns = "6ba7b810-9dad-11d1-80b4-00c04fd430c8" as WorkspaceId
    // From Python's uuid.uuid5(uuid.NAMESPACE_DNS, "prompts/a.md").
    assert.strictEqual(
      Result.getOrThrow(read(dns, { "prompts/a.md": "---\n---\n" }))[0]!.id,
      "c2d19c60-d282-505f-b715-725fed8a8eb0"
    )
  })

  it("a file with an id gets the version 5 UUID of the lowercase id in the namespace of its workspace", () => {
    const dns = "6ba7b810-9dad-11d1-80b4-00c04fd430c8" as WorkspaceId
    const text = "---\nid: 6F1F0C2E-6F6E-4A57-9D9E-0B6F2F1B7A51\n---\n"
    const files = Result.getOrThrow(read(dns, { "prompts/a.md": text, "fragments/a.md": text }))
    // From Python's uuid.uuid5(uuid.NAMESPACE_DNS, "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51").
    const id = "588a3ed8-548f-5a88-8b24-e7a442567981"
    for (const file of files) {
      assert.deepStrictEqual([file.id, file.file_id], [id, "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51"])
    }
  })

  it("a file whose id is an earlier path of the file gets the same id as at that path, in every workspace", () => {
    const paths = ["prompts/Old/a b.md", "fragments/old.md"]
    for (const home of [workspace, newId<WorkspaceId>()]) {
      const before = Result.getOrThrow(read(home, Object.fromEntries(paths.map((path) => [path, "x"]))))
      const moved = paths.map((path) => [
        path.replace(/.*\//, path.startsWith("p") ? "prompts/new/" : "fragments/new/"),
        `---\nid: ${path}\n---\nx`
      ])
      const after = Result.getOrThrow(read(home, Object.fromEntries(moved)))
      assert.deepStrictEqual(
        after.map(({ id }) => id),
        before.map(({ id }) => id)
      )
    }
    for (const id of ["fragments/a.md", "prompts/a", "a.md"])
      assert.lengthOf(findProblems({ "prompts/b.md": `---\nid: ${id}\n---\n` }), 1)
  })

  it.each([
    ["a\n", "a"],
    ["", ""],
    ["\n", ""],
    ["# Title\n\n---\n\nText\n", "# Title\n\n---\n\nText"],
    ["---\n---\n\n---\n", "\n---"],
    ["\n--- not front matter\n", "\n--- not front matter"],
    ["--- not front matter\n", "--- not front matter"],
    ["---", "---"],
    ["\ufeffa\r\nb\r\n", "a\nb"],
    ["a\nb\r\n", "a\nb\r"],
    ["---\n---\na\n", "a"],
    ["---\n---\na", "a"],
    ["---\n---\na\n\n", "a\n"],
    ["---\n---\n", ""],
    ["---\n---", ""],
    ["---\n---\n---\n", "---"],
    ["---\n---\r\na\r\n", "a\r"],
    ["---\r\n---\r\na\r\nb\r\n", "a\nb"],
    ["\ufeff---\n---\na\n", "a"],
    ["--- \ntitle: x\n--- \na\n", "a"]
  ])("the file %j has the body %j", (text, body) => {
    assert.strictEqual(
      firstPrompt(Result.getOrThrow(read(workspace, { "prompts/a.md": text }))).current_content,
      body
    )
  })

  it.each(["\n---\ntitle: x\n---\n", "\ufeff\r\n \n---\r\n---\r\n", " ---\n---\n", "\n---"])(
    "parsePromptFiles rejects the file %j, because white space precedes the front matter",
    (text) => {
      const message =
        "the line of --- that opens the front matter must be the first line: remove what precedes it"
      assert.deepStrictEqual(findProblems({ "prompts/a.md": text }), [{ path: "prompts/a.md:1", message }])
    }
  )

  const long = "x".repeat(257)

  it("parsePromptFiles rejects invalid files, and the error lists every problem of every file", () => {
    assert.deepStrictEqual(
      findProblems({
        "prompts/b.md": "---\ntitle: x\n",
        "prompts/c.md": "---\ntype: poem\ntitel: 1\nlabels: []\ntags: x\n---\n",
        "prompts/d.md": "---\ntitle: x\nmodel: [\n---\n",
        "prompts/e.md": "---\ntitle: a\ntitle: b\n---\n",
        "prompts/f.md": "---\nfragments:\n  - fragment: none\n    wiht: {}\n---\n",
        "prompts/f2.md": "---\nfragments:\n  - fragment: none\n---\n",
        "prompts/g.md": "---\nid: 7\n---\n",
        "prompts/h.md": "---\n---\n\0",
        [`prompts/${long}/i.md`]: "---\n---\n",
        "fragments/a.md": `---\nname: ${long}\n---\n`
      }),
      [
        { path: "fragments/a.md", message: "name: must be at most 256 characters" },
        { path: "prompts/b.md:1", message: "the front matter has no end: add a line of ---" },
        { path: "prompts/c.md", message: "unknown key titel; did you mean title?" },
        { path: "prompts/c.md", message: "unknown key labels" },
        {
          path: "prompts/c.md",
          message: "type: must be one of system, user, assistant, template, few-shot, chain-of-thought"
        },
        { path: "prompts/c.md", message: "tags: must be a list, such as [production, draft]" },
        {
          path: "prompts/d.md:4",
          message:
            "a list or map has no end: add ] or, if the bracket is a part of the text, put quotes around the value"
        },
        { path: "prompts/e.md:3", message: "the key occurs twice: remove one of the two lines" },
        { path: "prompts/f.md", message: "fragments: 0: unknown key wiht; did you mean with?" },
        { path: "prompts/f2.md", message: "fragments: there is no file fragments/none.md" },
        {
          path: "prompts/g.md",
          message:
            'id: must be a UUID, such as "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51", or the earlier path of a file that was moved'
        },
        { path: "prompts/h.md", message: "body: must not contain the NUL character" },
        { path: `prompts/${long}/i.md`, message: "the folder's name must be at most 256 characters" }
      ]
    )
  })

  it("parsePromptFiles rejects a file whose YAML aliases expand excessively", () => {
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for (const [name, of] of ["ba", "cb", "dc", "ed", "fe", "gf"])
      bomb.push(`${name}: &${name} [${Array(9).fill(`*${of}`).join(", ")}]`)
    assert.deepStrictEqual(findProblems({ "prompts/a.md": `---\n${bomb.join("\n")}\n---\n` }), [
      { path: "prompts/a.md", message: "Excessive alias count indicates a resource exhaustion attack" }
    ])
  })
})
