import type { Problem } from "../../domain/workspace/Problem.ts"
import { type ContentFile, toFileKey, toKey } from "./ContentFile.ts"

/**
 * Returns the files, each with the id of the prompt or fragment that it describes. References of prompts to fragments
 * get the same ids. If `keys` contains the id in the front matter, the file describes the prompt or fragment with this
 * id, even if the prompt is archived. Any other file keeps its `id`. The reader of the file derived that `id` from two
 * values: the id of the workspace, and the id in the front matter. If the front matter has no id, the second value is
 * the path of the file. An id of another workspace is therefore never used, and every import of the same files into a
 * workspace finds the same prompts.
 *
 * @param keys the keys of the workspace's prompts and fragments
 */
export const matchFiles = (
  keys: { readonly has: (key: string) => boolean },
  files: ReadonlyArray<ContentFile>
): ReadonlyArray<ContentFile> => {
  const findId = ({ id, file_id, state }: ContentFile): string =>
    file_id !== null && keys.has(toKey(state.kind, file_id)) ? file_id : id
  const fragments = files.filter(({ state }) => state.kind === "fragment")
  const fragmentIds = new Map(fragments.map((file) => [file.id, findId(file)]))
  const matchState = (state: ContentFile["state"]): ContentFile["state"] =>
    state.kind === "fragment"
      ? state
      : {
          ...state,
          fragments: state.fragments.map(({ fragment_id, variable_overrides }) => ({
            fragment_id: fragmentIds.get(fragment_id) ?? fragment_id,
            variable_overrides
          }))
        }
  return files.map((file) => ({ ...file, id: findId(file), state: matchState(file.state) }))
}

/** Returns a problem for each file that describes the same prompt or fragment as an earlier file. */
export const findDuplicates = (files: ReadonlyArray<ContentFile>): ReadonlyArray<Problem> =>
  [...Map.groupBy(files, toFileKey).values()].flatMap(([first, ...others]) =>
    others.map(({ path }) => ({ path, message: `has the id of ${first?.path}` }))
  )
