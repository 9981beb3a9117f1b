import * as Result from "effect/Result"
import { emptySlug, toSlug } from "../../domain/PromptName.ts"
import type { Pair } from "./Comparison.ts"
import { getName } from "./ContentState.ts"
import { InvalidFiles } from "./PromptFile.ts"

/** Returns true if the prompt of a file already has the slug `slug` in the workspace. */
const hasSlug = ({ item }: Pair, slug: string): boolean =>
  item?.isArchived === false && toSlug(getName(item.state)) === slug

/**
 * Fails if a file gives a prompt the name of another file's prompt (docs/names.md). Prompts that already have the same
 * name in the workspace may keep it. Titles without Latin letters and digits may have the same slug.
 */
export const requireDistinctNames = (
  pairs: ReadonlyArray<Pair>
): Result.Result<ReadonlyArray<Pair>, InvalidFiles> => {
  const described = pairs.flatMap((pair) => {
    const { file } = pair
    const slug = file?.state.kind === "prompt" ? toSlug(file.state.title) : emptySlug
    return file === undefined || slug === emptySlug ? [] : [{ ...pair, path: file.path, slug }]
  })
  const problems = [...Map.groupBy(described, ({ slug }) => slug)].flatMap(([slug, sameName]) => {
    const [first, ...others] = sameName.sort((a, b) => Number(hasSlug(b, slug)) - Number(hasSlug(a, slug)))
    return others
      .filter((pair) => !hasSlug(pair, slug))
      .map(({ path }) => ({
        path,
        message: `has the name ${slug}, like ${first?.path}: change one of the titles`
      }))
  })
  return problems.length > 0 ? Result.fail(InvalidFiles(problems)) : Result.succeed(pairs)
}
