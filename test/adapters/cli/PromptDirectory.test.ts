import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { CliFailure } from "../../../src/adapters/cli/CliFailure.ts"
import {
  layOut,
  parse,
  readDirectory,
  render,
  writeDirectory
} from "../../../src/adapters/cli/PromptDirectory.ts"
import { BadFiles, mergeFiles, type PromptFiles } from "../../../src/application/PromptFiles.ts"
import { contentOf, isEmptyEdit } from "../../../src/application/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../src/domain/Prompt.ts"
import {
  archive,
  archives,
  folder,
  fragment,
  instant,
  newId,
  prompt,
  sample,
  storable,
  texts
} from "../../support/archives.ts"

const byPath = ({ prompts, fragments }: PromptFiles): PromptFiles => {
  const sorted = <A extends { readonly path: string }>(files: ReadonlyArray<A>) =>
    files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  return { prompts: sorted(prompts), fragments: sorted(fragments) }
}

const read = (workspace: WorkspaceId, files: Record<string, string>) =>
  parse(workspace, new Map(Object.entries(files)))

const faultsOf = (files: Record<string, string>) => {
  const result = read(newId(), files)
  return Result.isFailure(result) ? result.failure.faults : []
}

describe("a workspace as files", () => {
  it.prop("reads back as it was written", { archive: archives }, ({ archive }) => {
    const files = layOut(archive)
    assert.deepStrictEqual(parse(archive.workspace.id, render(files)), Result.succeed(byPath(files)))
  })

  it.prop(
    "keeps every text and every name of a folder",
    { name: texts, content: texts },
    ({ name, content }) => {
      const drawer = folder({ name: name.slice(0, 256).toWellFormed() || "x" })
      const made = archive({
        folders: [drawer],
        fragments: [fragment(content, { name: drawer.name })],
        prompts: [prompt({ title: name, intent: content, current_content: content, folder_id: drawer.id })]
      })
      const files = layOut(made)
      assert.deepStrictEqual(parse(made.workspace.id, render(files)), Result.succeed(files))
      const [path] = render({ ...files, fragments: [] }).keys()
      assert.isFalse(
        path!.split("/").some((segment) => /^\.|^$|[. ]$|[\\:*?"<>|\p{Cc}]/u.test(segment)),
        path
      )
    }
  )

  it.prop("changes nothing in the workspace that it is of", { archive: archives }, ({ archive }) => {
    const context = { now: instant("2030-01-01T00:00:00.000Z"), newId: () => assert.fail("nothing is new") }
    const { edit, changes } = mergeFiles(contentOf(archive), layOut(archive), context)
    assert.deepStrictEqual(changes, [])
    assert.isTrue(isEmptyEdit(edit))
  })

  it("has different paths for what has the same title, whatever the case", () => {
    const titles = ["Same", "same", "Same!", "", "..", "/"]
    const { prompts } = layOut(archive({ prompts: titles.map((title) => prompt({ title })) }))
    assert.strictEqual(new Set(prompts.map(({ path }) => path.toLowerCase())).size, titles.length)
    assert.strictEqual(prompts[0]!.path, "prompts/same.md")
    assert.strictEqual(prompts[3]!.path, "prompts/untitled.md")
  })
})

/** Names that a path can't hold as they are, or only beside others that differ. */
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
  "../..",
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
    const titles = ["agent", "Agent", "inner", "a", "b", "", "日".repeat(300), "İ".repeat(60)]
    const prompts = plan.prompts.map(([title, at]) =>
      prompt({
        title: titles[title % titles.length]!,
        folder_id: folders[at % (folders.length + 1)]?.id ?? null
      })
    )
    return archive({ folders, prompts })
  }
)

/** The same files on a file system that ignores case: a directory keeps its first spelling. */
const onDiskWithoutCase = (texts: ReadonlyMap<string, string>): ReadonlyMap<string, string> => {
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

describe("a workspace with any names", () => {
  const root = mkdtempSync(join(tmpdir(), "prompt-names-"))
  afterAll(() => rmSync(root, { recursive: true }))
  let count = 0

  const content = ({ prompts }: PromptFiles) =>
    prompts.map(({ path: _, ...file }) => file).toSorted((a, b) => (a.id < b.id ? -1 : 1))

  it.effect.prop("is written to a directory and read back", { made: awkwardArchives }, ({ made }) =>
    Effect.gen(function* () {
      const files = layOut(made)
      const directory = join(root, String(count++))
      yield* writeDirectory(directory, files)
      assert.deepStrictEqual(yield* readDirectory(directory, made.workspace.id), byPath(files))
      rmSync(directory, { recursive: true })
      const folded = Result.getOrThrow(parse(made.workspace.id, onDiskWithoutCase(render(files))))
      assert.deepStrictEqual(content(folded), content(files))
    }).pipe(Effect.orDie)
  )

  it("keeps the folder in the front matter only where the path can't say it", () => {
    const pathsOf = (names: ReadonlyArray<string>) => {
      const folders = names.map((name) => folder({ name }))
      const prompts = folders.map(({ id }) => prompt({ title: "Agent", folder_id: id }))
      const texts = render(layOut(archive({ folders, prompts })))
      return [...texts].map(([path, text]) => [path, /^folder: .*$/m.exec(text)?.[0]])
    }
    assert.deepStrictEqual(pathsOf(["Support", "a/b", "/", "日".repeat(85), ".x:"]), [
      ["prompts/Support/agent.md", undefined],
      ["prompts/a/b/agent.md", undefined],
      ["prompts/%2F/agent.md", undefined],
      [`prompts/${"日".repeat(85)}/agent.md`, undefined],
      ["prompts/%2Ex%3A/agent.md", undefined]
    ])
    const long = "日".repeat(86)
    const [[path, front]] = pathsOf([long]) as [[string, string]]
    assert.match(path, /^prompts\/日{79}~[0-9a-f]{16}\/agent\.md$/)
    assert.strictEqual(front, `folder: ${long}`)
    assert.deepStrictEqual(
      pathsOf(["Support", "support"]).map(([, front]) => front),
      ["folder: Support", "folder: support"]
    )
  })

  it("gives a file another name than a folder beside it", () => {
    const drawer = folder({ name: "Agent.md" })
    const first = prompt({ title: "agent" })
    const inner = prompt({ title: "inner", folder_id: drawer.id })
    const paths = (folders: ReadonlyArray<typeof drawer>, prompts: ReadonlyArray<typeof first>) =>
      layOut(archive({ folders, prompts })).prompts.map(({ path }) => path)
    assert.deepStrictEqual(paths([drawer], [first, inner]), [
      `prompts/agent-${first.id.slice(0, 8)}.md`,
      "prompts/Agent.md/inner.md"
    ])
    assert.deepStrictEqual(paths([drawer], [first]), ["prompts/agent.md"])
    const taken = ["agent", `agent-${first.id.slice(0, 8)}`, `agent-${first.id}`]
    const folders = taken.map((name) => folder({ name: `${name}.md` }))
    const inside = folders.map(({ id }) => prompt({ title: "inner", folder_id: id }))
    assert.strictEqual(paths(folders, [first, ...inside])[0], `prompts/agent-${first.id}-2.md`)
  })

  it("reads a folder from the front matter before the path", () => {
    const workspace = newId<WorkspaceId>()
    const folderAt = (text: string) => {
      const result = read(workspace, { "prompts/a/b.md": text })
      return Result.isSuccess(result) ? result.success.prompts[0]!.folder : result.failure.faults
    }
    assert.strictEqual(folderAt("---\n---\n"), "a")
    assert.strictEqual(folderAt("---\nfolder: c/d\n---\n"), "c/d")
    assert.strictEqual(folderAt(`---\nfolder: ${"😀".repeat(256)}\n---\n`), "😀".repeat(256))
    assert.deepStrictEqual(folderAt(`---\nfolder: ${"x".repeat(257)}\n---\n`), [
      { path: "prompts/a/b.md", message: "its folder's name must be at most 256 characters" }
    ])
  })
})

describe("a file", () => {
  const workspace = newId<WorkspaceId>()

  it("may say next to nothing: the rest is of its path", () => {
    const files = {
      "prompts/Support/hello.md": "---\n---\nHello {{name}}\n",
      "fragments/tone.md": "---\n---\nKind"
    }
    const first = Result.getOrThrow(read(workspace, files))
    assert.deepStrictEqual(first, {
      fragments: [{ path: "fragments/tone.md", id: first.fragments[0]!.id, name: "tone", content: "Kind" }],
      prompts: [
        {
          path: "prompts/Support/hello.md",
          folder: "Support",
          id: first.prompts[0]!.id,
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
      ]
    })
    assert.deepStrictEqual(read(workspace, files), Result.succeed(first))
    assert.notStrictEqual(
      Result.getOrThrow(read(newId(), files)).prompts[0]!.id,
      Result.getOrThrow(read(workspace, files)).prompts[0]!.id
    )
  })

  it("has as its id, where it names none, the UUID of version 5 of its path in its workspace", () => {
    const dns = "6ba7b810-9dad-11d1-80b4-00c04fd430c8" as WorkspaceId
    // From Python's uuid.uuid5(uuid.NAMESPACE_DNS, "prompts/a.md").
    assert.strictEqual(
      Result.getOrThrow(read(dns, { "prompts/a.md": "---\n---\n" })).prompts[0]!.id,
      "c2d19c60-d282-505f-b715-725fed8a8eb0"
    )
  })

  it.each([
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
  ])("%j has the body %j", (text, body) => {
    assert.strictEqual(
      Result.getOrThrow(read(workspace, { "prompts/a.md": text })).prompts[0]!.current_content,
      body
    )
  })

  const noFront = "must begin with front matter: YAML between two lines of ---"
  const long = "x".repeat(257)

  it("that is wrong is told with every fault of every file", () => {
    assert.deepStrictEqual(
      faultsOf({
        "prompts/a.md": "no front matter",
        "prompts/b.md": "---\ntitle: x\n",
        "prompts/c.md": "---\ntype: poem\nextra: 1\ntags: x\n---\n",
        "prompts/d.md": "---\ntitle: x\nmodel: [\n---\n",
        "prompts/e.md": "---\ntitle: a\ntitle: b\n---\n",
        "prompts/f.md": "---\nfragments:\n  - fragment: none\n---\n",
        "prompts/g.md": "---\nid: 7\n---\n",
        "prompts/h.md": "---\n---\n\0",
        [`prompts/${long}/i.md`]: "---\n---\n",
        "fragments/a.md": '---\nname: ""\n---\n'
      }),
      [
        { path: "fragments/a.md", message: "name: must not be empty" },
        { path: "prompts/a.md", message: noFront },
        { path: "prompts/b.md", message: noFront },
        { path: "prompts/c.md", message: "extra: Expected no excess property" },
        {
          path: "prompts/c.md",
          message:
            'type: Expected "system" | "user" | "assistant" | "template" | "few-shot" | "chain-of-thought"'
        },
        { path: "prompts/c.md", message: "tags: Expected array" },
        {
          path: "prompts/d.md:4",
          message: "Flow sequence in block collection must be sufficiently indented and end with a ]"
        },
        { path: "prompts/e.md:3", message: "Map keys must be unique" },
        { path: "prompts/f.md", message: "fragments: there is no file fragments/none.md" },
        { path: "prompts/g.md", message: "id: Expected string" },
        { path: "prompts/h.md", message: "body: must not contain the NUL character" },
        { path: `prompts/${long}/i.md`, message: "its folder's name must be at most 256 characters" }
      ]
    )
  })

  it("cannot make YAML explode", () => {
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for (const [name, of] of ["ba", "cb", "dc", "ed", "fe", "gf"])
      bomb.push(`${name}: &${name} [${Array(9).fill(`*${of}`).join(", ")}]`)
    assert.deepStrictEqual(faultsOf({ "prompts/a.md": `---\n${bomb.join("\n")}\n---\n` }), [
      { path: "prompts/a.md", message: "Excessive alias count indicates a resource exhaustion attack" }
    ])
  })
})

describe("a directory", () => {
  const root = mkdtempSync(join(tmpdir(), "prompt-files-"))
  afterAll(() => rmSync(root, { recursive: true }))
  const workspace = newId<WorkspaceId>()
  const readAt = (directory: string) => Effect.runPromise(Effect.result(readDirectory(directory, workspace)))

  it("is written and read again, and not written over", async () => {
    const { archive: made } = sample()
    const files = layOut(made)
    const directory = join(root, "made")
    await Effect.runPromise(writeDirectory(directory, files))
    assert.deepStrictEqual(await readAt(directory), Result.succeed(byPath(files)))
    assert.deepStrictEqual(
      await Effect.runPromise(Effect.flip(writeDirectory(directory, files))),
      new CliFailure({
        message: `can't write ${directory}: it has a fragments/ already; remove it, or give another directory`
      })
    )
  })

  it("is empty of prompts only where it says so", async () => {
    const directory = join(root, "empty")
    mkdirSync(directory)
    assert.deepStrictEqual(
      await readAt(directory),
      Result.fail(new CliFailure({ message: `can't read ${directory}: it has no directory prompts/` }))
    )
    mkdirSync(join(directory, "prompts"))
    assert.deepStrictEqual(await readAt(directory), Result.succeed({ prompts: [], fragments: [] }))
  })

  it("is left as it was by a write that fails or is interrupted", async () => {
    const files = layOut(sample().archive)
    const broken = {
      ...files,
      prompts: [...files.prompts, { ...files.prompts[0]!, path: `prompts/${"x".repeat(300)}.md` }]
    }
    const existing = join(root, "existing")
    mkdirSync(existing)
    writeFileSync(join(existing, "README.md"), "kept")
    for (const directory of [existing, join(root, "new")]) {
      const before = readdirSync(root)
      const refusal = await Effect.runPromise(Effect.flip(writeDirectory(directory, broken)))
      assert.match(refusal.message, /^can't write .*ENAMETOOLONG/)
      const many = Array.from({ length: 2_000 }, (_, index) => ({
        ...files.prompts[0]!,
        path: `prompts/${index}.md`
      }))
      const exit = await Effect.runPromiseExit(
        Effect.timeout(writeDirectory(directory, { prompts: many, fragments: [] }), 30)
      )
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(readdirSync(existing), ["README.md"])
      assert.deepStrictEqual(readdirSync(root), before)
    }
    await Effect.runPromise(writeDirectory(existing, files))
    assert.deepStrictEqual(readdirSync(existing).toSorted(), ["README.md", "fragments", "prompts"])
    assert.deepStrictEqual(await readAt(existing), Result.succeed(byPath(files)))
  })

  it("may be a symbolic link itself, but prompts/ and fragments/ may not", async () => {
    const files = layOut(sample().archive)
    const real = join(root, "real")
    mkdirSync(real)
    const link = join(root, "link")
    symlinkSync(real, link)
    await Effect.runPromise(writeDirectory(link, files))
    assert.deepStrictEqual(await readAt(link), Result.succeed(byPath(files)))
    const linked = join(root, "linked")
    mkdirSync(linked)
    for (const part of ["prompts", "fragments"]) symlinkSync(join(real, part), join(linked, part))
    const message = "is a symbolic link, which is not followed"
    const refused = await readAt(linked)
    assert.deepStrictEqual(
      refused,
      Result.fail(
        BadFiles([
          { path: "prompts", message },
          { path: "fragments", message }
        ])
      )
    )
  })

  it("has its faults told, and what is no prompt left alone", async () => {
    const directory = join(root, "mixed")
    mkdirSync(join(directory, "prompts", ".obsidian"), { recursive: true })
    writeFileSync(join(directory, "README.md"), "no prompt")
    writeFileSync(join(directory, "prompts", "notes.txt"), "no prompt")
    writeFileSync(join(directory, "prompts", ".obsidian", "a.md"), "no prompt")
    assert.deepStrictEqual(await readAt(directory), Result.succeed({ prompts: [], fragments: [] }))
    writeFileSync(join(directory, "prompts", "latin.md"), Buffer.from("---\n---\nB\xfcro", "latin1"))
    symlinkSync(join(directory, "README.md"), join(directory, "prompts", "link.md"))
    assert.deepStrictEqual(
      Result.mapError(await readAt(directory), (refusal) =>
        refusal._tag === "BadFiles" ? refusal.faults.toSorted((a, b) => (a.path < b.path ? -1 : 1)) : refusal
      ),
      Result.fail([
        { path: "prompts/latin.md", message: "is not UTF-8" },
        { path: "prompts/link.md", message: "is a symbolic link, which is not followed" }
      ])
    )
  })
})
