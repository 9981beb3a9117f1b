import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { CommandError } from "../../../../../src/adapters/inbound/cli/output/CommandError.ts"
import {
  readTexts,
  requireNoFiles,
  updateDirectory
} from "../../../../../src/adapters/inbound/cli/transfer/PromptDirectory.ts"
import { InvalidFiles, type Texts } from "../../../../../src/application/transfer/PromptFile.ts"
import { sample } from "../../../../support/archives.ts"
import { renderFiles } from "../../../../support/promptFiles.ts"
import { makeTestDirectory } from "../../../../support/testDirectory.ts"

describe("a directory of prompts", () => {
  const root = makeTestDirectory("prompt-files-")
  const readAt = (directory: string) => Effect.runPromise(Effect.result(readTexts(directory, true)))
  const write = (directory: string, texts: Texts) =>
    Effect.andThen(requireNoFiles(directory), updateDirectory(directory, texts, []))

  it("reading a directory returns the files that were written, and a second write does not overwrite the directory", async () => {
    const files = renderFiles(sample().archive)
    const directory = join(root, "original")
    await Effect.runPromise(write(directory, files))
    assert.deepStrictEqual(await readAt(directory), Result.succeed(files))
    assert.deepStrictEqual(
      await Effect.runPromise(Effect.flip(write(directory, files))),
      new CommandError({
        message: `cannot write ${directory}: it already contains fragments/; add --update to update it, or choose another directory`
      })
    )
  })

  it("readTexts rejects a directory without prompts/, and returns no texts if prompts/ is empty", async () => {
    const directory = join(root, "empty")
    mkdirSync(directory)
    assert.deepStrictEqual(
      await readAt(directory),
      Result.fail(new CommandError({ message: `cannot read ${directory}: it has no prompts/ directory` }))
    )
    mkdirSync(join(directory, "prompts"))
    assert.deepStrictEqual(await readAt(directory), Result.succeed(new Map()))
  })

  it("a write that fails or is interrupted leaves no new file", async () => {
    const files = renderFiles(sample().archive)
    const broken = new Map([...files, [`prompts/${"x".repeat(300)}.md`, ""]])
    const existing = join(root, "existing")
    mkdirSync(existing)
    writeFileSync(join(existing, "README.md"), "unchanged")
    const created = join(root, "created")
    for (const directory of [existing, created]) {
      const rejection = await Effect.runPromise(Effect.flip(write(directory, broken)))
      assert.match(rejection.message, /^cannot write .*ENAMETOOLONG/)
      const many = new Map(Array.from({ length: 2_000 }, (_, index) => [`prompts/${index}.md`, "Many"]))
      const exit = await Effect.runPromiseExit(Effect.timeout(write(directory, many), 30))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(readdirSync(directory), directory === existing ? ["README.md"] : [])
    }
    await Effect.runPromise(write(existing, files))
    assert.deepStrictEqual(readdirSync(existing).toSorted(), ["README.md", "fragments", "prompts"])
    assert.deepStrictEqual(await readAt(existing), Result.succeed(files))
  })

  it("readTexts rejects a directory in which prompts or fragments is a file", async () => {
    for (const part of ["prompts", "fragments"]) {
      const directory = mkdtempSync(join(root, "file-"))
      mkdirSync(join(directory, part === "prompts" ? "fragments" : "prompts"))
      writeFileSync(join(directory, part), "")
      assert.deepStrictEqual(
        await readAt(directory),
        Result.fail(InvalidFiles([{ path: part, message: "is not a directory" }]))
      )
    }
  })

  it("a directory of prompts may be a symbolic link, but its prompts/ and fragments/ must not be symbolic links", async () => {
    const files = renderFiles(sample().archive)
    const real = join(root, "real")
    mkdirSync(real)
    const link = join(root, "link")
    symlinkSync(real, link)
    await Effect.runPromise(write(link, files))
    assert.deepStrictEqual(await readAt(link), Result.succeed(files))
    const linked = join(root, "linked")
    mkdirSync(linked)
    for (const part of ["prompts", "fragments"]) symlinkSync(join(real, part), join(linked, part))
    const message = "is a symbolic link, which is not followed"
    const rejected = await readAt(linked)
    assert.deepStrictEqual(
      rejected,
      Result.fail(
        InvalidFiles([
          { path: "fragments", message },
          { path: "prompts", message }
        ])
      )
    )
  })

  it("readTexts rejects symbolic links and files that are not UTF-8, and ignores hidden directories and files whose extension is not .md", async () => {
    const directory = join(root, "mixed")
    mkdirSync(join(directory, "prompts", ".obsidian"), { recursive: true })
    writeFileSync(join(directory, "README.md"), "no prompt")
    writeFileSync(join(directory, "prompts", "notes.txt"), "no prompt")
    writeFileSync(join(directory, "prompts", ".obsidian", "a.md"), "no prompt")
    assert.deepStrictEqual(await readAt(directory), Result.succeed(new Map()))
    writeFileSync(join(directory, "prompts", "latin.md"), Buffer.from("---\n---\nB\xfcro", "latin1"))
    symlinkSync(join(directory, "README.md"), join(directory, "prompts", "link.md"))
    assert.deepStrictEqual(
      Result.mapError(await readAt(directory), (rejection) =>
        rejection._tag === "InvalidFiles"
          ? rejection.problems.toSorted((a, b) => (a.path < b.path ? -1 : 1))
          : rejection
      ),
      Result.fail([
        { path: "prompts/latin.md", message: "is not UTF-8" },
        { path: "prompts/link.md", message: "is a symbolic link, which is not followed" }
      ])
    )
  })
})

describe("updateDirectory", () => {
  const root = makeTestDirectory("prompt-update-")

  it("updateDirectory writes and removes the given files, and changes no other file", async () => {
    const directory = join(root, "existing")
    const write = (path: string, text: string) => {
      mkdirSync(join(directory, dirname(path)), { recursive: true })
      writeFileSync(join(directory, path), text)
    }
    write("README.md", "readme")
    write("prompts/kept.md", "kept")
    write("prompts/a/b/removed.md", "removed")
    write("prompts/c/removed.md", "removed")
    write("prompts/c/notes.txt", "notes")
    const { ino, mtimeMs } = statSync(join(directory, "prompts/kept.md"))
    await Effect.runPromise(
      updateDirectory(
        directory,
        new Map([
          ["prompts/a.md", "new"],
          ["prompts/d/new.md", "new"],
          ["fragments/new.md", "new"]
        ]),
        ["prompts/a/b/removed.md", "prompts/c/removed.md"]
      )
    )
    assert.deepStrictEqual(readdirSync(directory, { recursive: true, encoding: "utf8" }).sort(), [
      "README.md",
      "fragments",
      "fragments/new.md",
      "prompts",
      "prompts/a",
      "prompts/a.md",
      "prompts/a/b",
      "prompts/c",
      "prompts/c/notes.txt",
      "prompts/d",
      "prompts/d/new.md",
      "prompts/kept.md"
    ])
    assert.deepStrictEqual(
      { ino, mtimeMs },
      {
        ino: statSync(join(directory, "prompts/kept.md")).ino,
        mtimeMs: statSync(join(directory, "prompts/kept.md")).mtimeMs
      }
    )
    assert.strictEqual(readFileSync(join(directory, "prompts/a.md"), "utf8"), "new")
  })

  it.each([
    ["a directory has the path of a file", "prompts/b.md/notes.txt"],
    ["a file has the path of a directory", "prompts/b"]
  ])("updateDirectory changes nothing if %s", async (_, obstacle) => {
    const directory = mkdtempSync(join(root, "obstacle-"))
    mkdirSync(join(directory, dirname(obstacle)), { recursive: true })
    writeFileSync(join(directory, obstacle), "notes")
    writeFileSync(join(directory, "prompts/removed.md"), "removed")
    const before = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort()
    const texts = new Map([
      ["prompts/a.md", "new"],
      ["prompts/b.md", "new"],
      ["prompts/b/c.md", "new"]
    ])
    const rejection = await Effect.runPromise(
      Effect.flip(updateDirectory(directory, texts, ["prompts/removed.md"]))
    )
    assert.match(rejection.message, /^cannot write .*(b\.md is a directory|ENOTDIR)/)
    assert.deepStrictEqual(readdirSync(directory, { recursive: true, encoding: "utf8" }).sort(), before)
  })
})
