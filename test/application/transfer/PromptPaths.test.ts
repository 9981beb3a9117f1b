import { rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { readTexts, updateDirectory } from "../../../src/adapters/inbound/cli/files/PromptDirectory.ts"
import { makePathFactory } from "../../../src/application/transfer/PromptPaths.ts"
import { parsePromptFiles } from "../../../src/application/transfer/PromptFile.ts"
import { readItems } from "../../../src/application/transfer/ContentState.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { archive, folder, newId, prompt, storable, toWorkspaceContent } from "../../support/archives.ts"
import { findDifferences, firstPrompt, parseFiles, renderFiles } from "../../support/promptFiles.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

/** Folder names that are hard to express as paths, such as names that differ only in case. */
const awkwardNames = [
  "",
  "agent.md",
  "Agent.MD",
  "agent.md/inner.md",
  "agent",
  "AGENT",
  "A/b",
  "a/c",
  "/",
  "//a",
  ".",
  "..",
  "../../..",
  "a b ",
  "con:*?",
  "%41",
  "~",
  "é",
  "e\u0301",
  "\u0085".repeat(200),
  "日".repeat(86),
  "日".repeat(256),
  `${"日".repeat(255)}本`,
  `${"語".repeat(100)}/${"本".repeat(100)}`,
  "😀".repeat(256),
  "x".repeat(256),
  "a/".repeat(127)
]

const awkwardArchives = Arbitrary.map(
  Arbitrary.all({
    folders: Arbitrary.array(
      Arbitrary.all([Arbitrary.schema(Schema.Natural), Arbitrary.schema(Schema.String)]),
      { maxLength: 8 }
    ),
    prompts: Arbitrary.array(
      Arbitrary.all([Arbitrary.schema(Schema.Natural), Arbitrary.schema(Schema.Natural)]),
      { maxLength: 12 }
    )
  }),
  (plan) => {
    const folders = plan.folders.map(([choice, text]) =>
      folder({
        name: awkwardNames[choice % (awkwardNames.length + 3)] ?? storable([...text].slice(0, 256).join(""))
      })
    )
    const titles = ["agent", "Agent", "inner", "a", "b", "", "日".repeat(256), "İ".repeat(60)]
    const prompts = plan.prompts.map(([title, at]) =>
      prompt({
        title: titles[title % titles.length]!,
        folder_id: folders[at % (folders.length + 1)]?.id ?? null
      })
    )
    return archive({ folders, prompts })
  }
)

/** Fails unless files with these paths can exist together on a file system that ignores case. */
const assertNoCollision = (paths: ReadonlyArray<string>): void => {
  const folded = paths.map((path) => path.normalize("NFC").toLowerCase())
  assert.strictEqual(new Set(folded).size, folded.length)
  const isDirectory = (path: string) => folded.some((other) => other.startsWith(`${path}/`))
  assert.deepStrictEqual(folded.filter(isDirectory), [])
}

describe("paths of prompts and folders", () => {
  const root = makeTestDirectory("prompt-names-")
  let count = 0

  it.effect.prop(
    "folder names and titles are unchanged after they are written to a directory and read back, and no two paths are equal if case is ignored",
    { original: awkwardArchives },
    ({ original }) =>
      Effect.gen(function* () {
        const directory = join(root, String(count++))
        const written = renderFiles(original)
        yield* updateDirectory(directory, written, [])
        const texts = yield* readTexts(directory, true)
        assert.deepStrictEqual(
          findDifferences(original.workspace.id, toWorkspaceContent(original), texts),
          []
        )
        rmSync(directory, { recursive: true })
        assertNoCollision([...written.keys()])
      }).pipe(Effect.orDie)
  )

  it("the front matter contains the folder's name only if the path cannot express the name", () => {
    const listPaths = (names: ReadonlyArray<string>) => {
      const folders = names.map((name) => folder({ name }))
      const prompts = folders.map(({ id }) => prompt({ title: "Agent", folder_id: id }))
      const texts = renderFiles(archive({ folders, prompts }))
      return [...texts].map(([path, text]) => [path, /^folder: .*$/m.exec(text)?.[0]])
    }
    assert.deepStrictEqual(listPaths(["Support", "a/b c", "/", "日".repeat(61), ".x:", "%41", "Agent.md"]), [
      ["prompts/41/agent.md", 'folder: "%41"'],
      ["prompts/Support/agent.md", undefined],
      ["prompts/a/b c/agent.md", undefined],
      ["prompts/agent-md/agent.md", "folder: Agent.md"],
      ["prompts/untitled/agent.md", "folder: /"],
      ["prompts/x/agent.md", 'folder: ".x:"'],
      [`prompts/${"日".repeat(50)}/agent.md`, `folder: ${"日".repeat(61)}`]
    ])
  })

  it("a path may percent-encode characters of the folder's name", () => {
    const texts = new Map([
      ["prompts/%2Ex%3A/50%25/a.md", ""],
      ["prompts/100%/a.md", ""]
    ])
    assert.deepStrictEqual(
      parseFiles(newId(), texts).map(({ state }) => state.kind === "prompt" && state.folder),
      ["100%", ".x:/50%"].toSorted()
    )
  })

  it("no new file gets the path of another file, even on a file system that ignores case", () => {
    const [first, second] = [prompt({ title: "agent" }), prompt({ title: "Agent" })]
    const items = readItems(toWorkspaceContent(archive({ prompts: [first, second] })))
    const makePaths = (...existing: ReadonlyArray<string>) => items.map(makePathFactory(existing))
    const [ofFirst, ofSecond] = [first.id.slice(-8), second.id.slice(-8)]
    assert.deepStrictEqual(makePaths(), ["prompts/agent.md", `prompts/agent-${ofSecond}.md`])
    assert.deepStrictEqual(makePaths("prompts/AGENT.md", `prompts/agent-${ofFirst}.md`), [
      `prompts/agent-${ofFirst}-${ofFirst}.md`,
      `prompts/agent-${ofSecond}.md`
    ])
    // A file cannot have the path of a directory.
    assert.deepStrictEqual(makePaths("prompts/Agent.md/b.md"), [
      `prompts/agent-${ofFirst}.md`,
      `prompts/agent-${ofSecond}.md`
    ])
  })

  it("a folder in the front matter takes precedence over the path and has at most 256 characters", () => {
    const workspace = newId<WorkspaceId>()
    const parseFolder = (text: string) => {
      const result = parsePromptFiles(workspace, new Map([["prompts/a/b.md", text]]))
      return Result.isSuccess(result) ? firstPrompt(result.success).folder : result.failure.problems
    }
    assert.strictEqual(parseFolder("---\n---\n"), "a")
    assert.strictEqual(parseFolder("---\nfolder: c/d\n---\n"), "c/d")
    assert.isNull(parseFolder("---\nfolder: null\n---\n"))
    assert.strictEqual(parseFolder(`---\nfolder: ${"😀".repeat(256)}\n---\n`), "😀".repeat(256))
    assert.deepStrictEqual(parseFolder(`---\nfolder: ${"x".repeat(257)}\n---\n`), [
      { path: "prompts/a/b.md", message: "the folder's name must be at most 256 characters" }
    ])
  })
})
