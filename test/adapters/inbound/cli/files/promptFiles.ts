import { makeRenderer } from "../../../../../src/application/transfer/PromptText.ts"
import {
  type ContentFile,
  type FileSource,
  type PromptState,
  readItems
} from "../../../../../src/application/transfer/ContentFile.ts"
import { matchFiles } from "../../../../../src/application/transfer/FileMatch.ts"

/** Sorts files in the order in which a directory is read. */
export const sortByPath = (files: ReadonlyArray<ContentFile>): ReadonlyArray<ContentFile> =>
  files.toSorted((a, b) => (a.path < b.path ? -1 : 1))

/** Returns a function that matches files with the workspace from which they were written. */
export const matchWith =
  (source: FileSource) =>
  (files: ReadonlyArray<ContentFile>): ReadonlyArray<ContentFile> =>
    matchFiles(readItems(source), files)

export const findPrompts = (files: ReadonlyArray<ContentFile>) =>
  files.flatMap(({ state, ...place }) => (state.kind === "prompt" ? [{ ...place, state }] : []))

export const firstPrompt = (files: ReadonlyArray<ContentFile>): PromptState => findPrompts(files)[0]!.state

/** Returns the rendered text of each file by path. */
export const renderFiles = (files: ReadonlyArray<ContentFile>): ReadonlyMap<string, string> => {
  const render = makeRenderer(files)
  return new Map(files.map((file) => [file.path, render(file)]))
}
