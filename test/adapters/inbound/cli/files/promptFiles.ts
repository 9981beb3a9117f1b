import { matchFiles } from "../../../../../src/application/formats/files/FileMatch.ts"
import type { FileSource, PromptFiles } from "../../../../../src/application/formats/files/PromptFiles.ts"

/** Sorts files as a directory is read. */
export const sortByPath = ({ prompts, fragments }: PromptFiles): PromptFiles => {
  const sorted = <A extends { readonly path: string }>(files: ReadonlyArray<A>) =>
    files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  return { prompts: sorted(prompts), fragments: sorted(fragments) }
}

/** Returns a function that matches files with the workspace that they were written from. */
export const matchWith =
  (source: FileSource) =>
  (files: PromptFiles): PromptFiles =>
    matchFiles(source, files)
