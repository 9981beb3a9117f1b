import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { readTexts, updateDirectory } from "../../../../../src/adapters/inbound/cli/files/PromptDirectory.ts"
import { assignPaths } from "../../../../../src/adapters/inbound/cli/files/PromptPaths.ts"
import { parsePromptFiles } from "../../../../../src/adapters/inbound/cli/files/PromptText.ts"
import type { ContentFile } from "../../../../../src/application/formats/files/ContentFile.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import { archive, compareIds, folder, newId, prompt, storable } from "../../../../support/archives.ts"
import { findPrompts, firstPrompt, matchWith, sortByPath, renderFiles } from "./promptFiles.ts"

/** Folder names that no path can hold unchanged, or that collide on some file systems. */
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

/** Moves files to a case-insensitive file system, on which a directory keeps its first spelling. */
const moveToCaseInsensitiveDisk = (texts: ReadonlyMap<string, string>): ReadonlyMap<string, string> => {
  const spellings = new Map<string, string>()
  const spell = (path: string): string => {
    const key = path.normalize("NFC").toLowerCase()
    if (!spellings.has(key)) {
      const slash = path.lastIndexOf("/")
      spellings.set(key, slash < 0 ? path : spell(path.slice(0, slash)) + path.slice(slash))
    }
    return spellings.get(key)!
  }
  const files = new Map([...texts].map(([path, text]) => [spell(path), text]))
  assert.strictEqual(files.size, texts.size)
  for (const path of files.keys())
    assert.isFalse(
      [...files.keys()].some((other) => other.startsWith(`${path}/`)),
      path
    )
  return files
}

describe("paths of prompts and folders", () => {
  const root = mkdtempSync(join(tmpdir(), "prompt-names-"))
  afterAll(() => rmSync(root, { recursive: true }))
  let count = 0

  const withoutPaths = (files: ReadonlyArray<ContentFile>) =>
    files.map(({ path: _, ...file }) => file).toSorted(compareIds)

  it.effect.prop(
    "any names survive a round trip through a directory and through a case-insensitive file system",
    { original: awkwardArchives },
    ({ original }) =>
      Effect.gen(function* () {
        const files = assignPaths(original)
        const directory = join(root, String(count++))
        yield* updateDirectory(directory, renderFiles(files), [])
        const texts = yield* readTexts(directory, true)
        const read = Result.getOrThrow(parsePromptFiles(original.workspace.id, texts))
        assert.deepStrictEqual(matchWith(original)(read), sortByPath(files))
        rmSync(directory, { recursive: true })
        const folded = Result.getOrThrow(
          parsePromptFiles(original.workspace.id, moveToCaseInsensitiveDisk(renderFiles(files)))
        )
        assert.deepStrictEqual(withoutPaths(matchWith(original)(folded)), withoutPaths(files))
      }).pipe(Effect.orDie)
  )

  it("the front matter names the folder only if the path cannot express it", () => {
    const listPaths = (names: ReadonlyArray<string>) => {
      const folders = names.map((name) => folder({ name }))
      const prompts = folders.map(({ id }) => prompt({ title: "Agent", folder_id: id }))
      const texts = renderFiles(assignPaths(archive({ folders, prompts })))
      return [...texts].map(([path, text]) => [path, /^folder: .*$/m.exec(text)?.[0]])
    }
    assert.deepStrictEqual(listPaths(["Support", "a/b", "/", "日".repeat(85), ".x:"]), [
      ["prompts/Support/agent.md", undefined],
      ["prompts/a/b/agent.md", undefined],
      ["prompts/%2F/agent.md", undefined],
      [`prompts/${"日".repeat(85)}/agent.md`, undefined],
      ["prompts/%2Ex%3A/agent.md", undefined]
    ])
    const long = "日".repeat(86)
    const [[path, front]] = listPaths([long]) as [[string, string]]
    assert.match(path, /^prompts\/日{50}~[0-9a-f]{16}\/agent\.md$/)
    assert.strictEqual(front, `folder: ${long}`)
    assert.deepStrictEqual(
      listPaths(["Support", "support"]).map(([, front]) => front),
      ["folder: Support", "folder: support"]
    )
  })

  it("no file gets the path of another file or folder, even on a file system that ignores case", () => {
    const drawer = folder({ name: "Agent.md" })
    const first = prompt({ title: "agent" })
    const inner = prompt({ title: "inner", folder_id: drawer.id })
    const content = archive({ folders: [drawer], prompts: [first, inner] })
    const paths = (...places: Parameters<typeof assignPaths>[1] & {}) =>
      findPrompts(assignPaths(content, places)).map(({ path }) => path)
    assert.deepStrictEqual(paths(), ["prompts/agent.md", "prompts/Agent%2Emd/inner.md"])
    const place = (path: string) => ({
      kind: "prompt" as const,
      target_id: inner.id as string,
      path,
      file_id: null,
      hash: ""
    })
    const short = `agent-${first.id.slice(0, 8)}`
    for (const path of ["prompts/Agent.md", "prompts/Agent.md/inner.md"])
      assert.deepStrictEqual(paths(place(path)), [`prompts/${short}.md`, path])
    const reserved = ["prompts/agent.md", `prompts/${short}.md`]
    const whole = `prompts/agent-${first.id}`
    assert.strictEqual(findPrompts(assignPaths(content, [], reserved))[0]!.path, `${whole}.md`)
    assert.strictEqual(
      findPrompts(assignPaths(content, [], [...reserved, `${whole}.md`]))[0]!.path,
      `${whole}-2.md`
    )
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
