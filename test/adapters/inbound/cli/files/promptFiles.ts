import { makeRenderer } from "../../../../../src/adapters/inbound/cli/files/PromptText.ts"
import {
  type ContentFile,
  type FileSource,
  type PromptState,
  readItems
} from "../../../../../src/application/formats/files/ContentFile.ts"
import { matchFiles } from "../../../../../src/application/formats/files/FileMatch.ts"

/** Sorts files as a directory is read. */
export const sortByPath = (files: ReadonlyArray<ContentFile>): ReadonlyArray<ContentFile> =>
  files.toSorted((a, b) => (a.path < b.path ? -1 : 1))

/** Returns a function that matches files with the workspace that they were written from. */
export const matchWith =
  (source: FileSource) =>
  (files: ReadonlyArray<ContentFile>): ReadonlyArray<ContentFile> =>
    matchFiles(readItems(source), files)

/** Returns the files of prompts. */
export const findPrompts = (files: ReadonlyArray<ContentFile>) =>
  files.flatMap(({ state, ...place }) => (state.kind === "prompt" ? [{ ...place, state }] : []))

/** Returns the state of the first prompt. */
export const firstPrompt = (files: ReadonlyArray<ContentFile>): PromptState => findPrompts(files)[0]!.state

/** Renders the text of each file, by its path. */
export const renderFiles = (files: ReadonlyArray<ContentFile>): ReadonlyMap<string, string> => {
  const render = makeRenderer(files)
  return new Map(files.map((file) => [file.path, render(file)]))
}
