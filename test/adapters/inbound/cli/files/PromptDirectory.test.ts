import { mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { CommandError } from "../../../../../src/adapters/inbound/cli/output/CommandError.ts"
import {
  readTexts,
  requireNoFiles,
  updateDirectory
} from "../../../../../src/adapters/inbound/cli/files/PromptDirectory.ts"
import { parsePromptFiles } from "../../../../../src/application/transfer/PromptText.ts"
import { assignPaths } from "../../../../../src/application/transfer/PromptPaths.ts"
import type { Archive } from "../../../../../src/application/transfer/Archive.ts"
import { type ContentFile, InvalidFiles } from "../../../../../src/application/transfer/ContentFile.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import { newId, sample } from "../../../../support/archives.ts"
import { matchWith, sortByPath, renderFiles } from "./promptFiles.ts"
import { makeTestDirectory } from "../../../../support/testDirectory.ts"

describe("a directory of prompts", () => {
  const root = makeTestDirectory("prompt-files-")
  const workspace = newId<WorkspaceId>()
  const readAt = (directory: string) =>
    Effect.runPromise(
      Effect.result(
        Effect.flatMap(readTexts(directory, true), (texts) =>
          Effect.fromResult(parsePromptFiles(workspace, texts))
        )
      )
    )
  const write = (directory: string, files: ReadonlyArray<ContentFile>) =>
    Effect.andThen(requireNoFiles(directory), updateDirectory(directory, renderFiles(files), []))
  /** Reads the files of a directory, and matches them with the workspace from which they were written. */
  const readBack = async (directory: string, source: Archive) =>
    Result.map(await readAt(directory), matchWith(source))

  it("reading a directory returns the files that were written, and a second write does not overwrite the directory", async () => {
    const { archive: original } = sample()
    const files = assignPaths(original)
    const directory = join(root, "original")
    await Effect.runPromise(write(directory, files))
    assert.deepStrictEqual(await readBack(directory, original), Result.succeed(sortByPath(files)))
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
    assert.deepStrictEqual(await readAt(directory), Result.succeed([]))
  })

  it("a write that fails or is interrupted leaves no new file", async () => {
    const { archive: original } = sample()
    const files = assignPaths(original)
    const broken = [...files, { ...files.at(-1)!, path: `prompts/${"x".repeat(300)}.md` }]
    const existing = join(root, "existing")
    mkdirSync(existing)
    writeFileSync(join(existing, "README.md"), "unchanged")
    const created = join(root, "created")
    for (const directory of [existing, created]) {
      const rejection = await Effect.runPromise(Effect.flip(write(directory, broken)))
      assert.match(rejection.message, /^cannot write .*ENAMETOOLONG/)
      const many = Array.from({ length: 2_000 }, (_, index) => ({
        ...files.at(-1)!,
        path: `prompts/${index}.md`
      }))
      const exit = await Effect.runPromiseExit(Effect.timeout(write(directory, many), 30))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(readdirSync(directory), directory === existing ? ["README.md"] : [])
    }
    await Effect.runPromise(write(existing, files))
    assert.deepStrictEqual(readdirSync(existing).toSorted(), ["README.md", "fragments", "prompts"])
    assert.deepStrictEqual(await readBack(existing, original), Result.succeed(sortByPath(files)))
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
    const { archive: original } = sample()
    const files = assignPaths(original)
    const real = join(root, "real")
    mkdirSync(real)
    const link = join(root, "link")
    symlinkSync(real, link)
    await Effect.runPromise(write(link, files))
    assert.deepStrictEqual(await readBack(link, original), Result.succeed(sortByPath(files)))
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
    assert.deepStrictEqual(await readAt(directory), Result.succeed([]))
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
