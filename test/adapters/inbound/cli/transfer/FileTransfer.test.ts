import { mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import * as Result from "effect/Result"
import { CommandError } from "../../../../../src/adapters/inbound/cli/output/CommandError.ts"
import {
  readTexts,
  requireNoFiles,
  updateDirectory
} from "../../../../../src/adapters/inbound/cli/transfer/FileTransfer.ts"
import { InvalidFiles, type Texts } from "../../../../../src/application/transfer/PromptFile.ts"
import { sample } from "../../../../support/archives.ts"
import { renderFiles } from "../../../../support/promptFiles.ts"
import { makeTestDirectory } from "../../../../support/testDirectory.ts"

const root = makeTestDirectory("prompt-files-")

/** Creates a directory with files. The text of each file is its path. */
const makeDirectory = (...paths: ReadonlyArray<string>): string => {
  const directory = mkdtempSync(join(root, "files-"))
  for (const path of paths) {
    mkdirSync(join(directory, dirname(path)), { recursive: true })
    writeFileSync(join(directory, path), path)
  }
  return directory
}
const run = <A, E>(effect: Effect.Effect<A, E, FileSystem>) =>
  Effect.runPromise(Effect.result(Effect.provide(effect, NodeFileSystem.layer)))
const read = (directory: string) => run(readTexts(directory, true))
const update = (directory: string, texts: Texts, removed: ReadonlyArray<string> = []) =>
  run(updateDirectory(directory, texts, removed))
const fail = (message: string) => Result.fail(new CommandError({ message }))
const list = (directory: string) => readdirSync(directory, { recursive: true, encoding: "utf8" }).sort()

it("readTexts returns the files that updateDirectory has written, even through a symbolic link to the directory", async () => {
  const files = renderFiles(sample().archive)
  const link = join(root, "link")
  symlinkSync(makeDirectory(), link)
  await update(link, files)
  assert.deepStrictEqual(await read(link), Result.succeed(files))
  const { message } = Result.getOrThrow(Result.flip(await run(requireNoFiles(link))))
  assert.match(message, /^cannot write .*: it already contains fragments\/; add --update/)
})

it("readTexts rejects a missing directory and a directory without prompts/, and returns no texts if prompts/ is empty", async () => {
  const directory = makeDirectory()
  const missing = join(directory, "missing")
  for (const [path, reason] of [
    [missing, `ENOENT: no such file or directory, scandir '${missing}'`],
    [directory, "it has no prompts/ directory"]
  ] as const)
    assert.deepStrictEqual(await read(path), fail(`cannot read ${path}: ${reason}`))
  mkdirSync(join(directory, "prompts"))
  assert.deepStrictEqual(await read(directory), Result.succeed(new Map()))
})

it("readTexts rejects symbolic links and files that are not UTF-8, and ignores hidden directories and files other than .md", async () => {
  const directory = makeDirectory("README.md", "prompts/notes.txt", "prompts/.obsidian/a.md")
  assert.deepStrictEqual(await read(directory), Result.succeed(new Map()))
  writeFileSync(join(directory, "fragments"), "")
  writeFileSync(join(directory, "prompts/latin.md"), Buffer.from("B\xfcro", "latin1"))
  symlinkSync(join(directory, "README.md"), join(directory, "prompts/link.md"))
  const rejected = Result.getOrThrow(Result.flip(await read(directory))) as InvalidFiles
  assert.deepStrictEqual(rejected.problems.map(({ path, message }) => `${path}: ${message}`).sort(), [
    "fragments: is not a directory",
    "prompts/latin.md: is not UTF-8",
    "prompts/link.md: is a symbolic link, which is not followed"
  ])
  const linked = makeDirectory()
  symlinkSync(join(directory, "prompts"), join(linked, "prompts"))
  const message = "is a symbolic link, which is not followed"
  assert.deepStrictEqual(await read(linked), Result.fail(new InvalidFiles([{ path: "prompts", message }])))
})

it("updateDirectory writes the given texts, removes the files at the given paths, and changes no other file", async () => {
  const removed = ["prompts/a/b/removed.md", "prompts/c/removed.md"]
  const kept = ["README.md", "prompts/c/notes.txt", "prompts/kept.md"]
  const directory = makeDirectory("prompts/a.md", ...kept, ...removed)
  const written = ["prompts/a.md", "prompts/d/new.md", "fragments/new.md"]
  await update(directory, new Map(written.map((path) => [path, "new"])), removed)
  const files = list(directory).filter((path) => path.includes("."))
  assert.deepStrictEqual(files, [...kept, ...written].sort())
  for (const path of kept) assert.strictEqual(readFileSync(join(directory, path), "utf8"), path)
  for (const path of written) assert.strictEqual(readFileSync(join(directory, path), "utf8"), "new")
})

it.each([
  ["a directory has the path of a file", "prompts/b.md/notes.txt"],
  ["a file has the path of a directory", "prompts/b"]
])("updateDirectory changes nothing if %s", async (_, obstacle) => {
  const directory = makeDirectory(obstacle, "prompts/removed.md")
  const before = list(directory)
  const texts = new Map(["a.md", "b.md", "b/c.md"].map((name) => [`prompts/${name}`, "new"]))
  const failure = Result.getOrThrow(Result.flip(await update(directory, texts, ["prompts/removed.md"])))
  assert.match(failure.message, /^cannot write .*(b\.md is a directory|ENOTDIR)/)
  assert.deepStrictEqual(list(directory), before)
})
