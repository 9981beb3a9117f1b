import type { PromptFiles } from "../../../../src/application/formats/PromptFiles.ts"

/** Sorts files as a directory is read. */
export const sortByPath = ({ prompts, fragments }: PromptFiles): PromptFiles => {
  const sorted = <A extends { readonly path: string }>(files: ReadonlyArray<A>) =>
    files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  return { prompts: sorted(prompts), fragments: sorted(fragments) }
}
