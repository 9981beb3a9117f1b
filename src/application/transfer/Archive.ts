import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { StoredKey, WholeWorkspace } from "../../domain/Workspace.ts"
import { ArchiveTooLarge, maxArchiveBytes } from "../../domain/WorkspaceContent.ts"

// A workspace archive is a whole workspace as one JSON file. `domain/Workspace.ts` defines the items of the file.

export const archiveFormat = "prompt-retrieval/workspace@1"

export const Archive = Schema.Struct({
  format: Schema.Literal(archiveFormat),
  ...WholeWorkspace.fields,
  api_keys: Schema.Array(
    Schema.Struct({
      ...StoredKey.fields,
      expires_at: StoredKey.fields.expires_at.pipe(Schema.withDecodingDefaultKey(Effect.succeed(null)))
    })
  )
}).annotate({ title: "Workspace archive", description: "A whole workspace as one JSON file." })
export type Archive = typeof Archive.Type

/** The lists of an archive in the order of an export. */
const lists = ["users", "api_keys", "folders", "tags", "fragments", "prompts"] as const

/** Returns an item's JSON. Omits `expires_at` if it is null, because older archives have no `expires_at`. */
const writeItem = (item: object): string =>
  JSON.stringify("expires_at" in item && item.expires_at === null ? { ...item, expires_at: undefined } : item)

/** The last piece of an archive. */
const end = "}\n"

/** Writes a workspace as the text of an archive, in pieces. Each list item is on its own line, for readable diffs. */
export function* writeArchive(whole: WholeWorkspace): Generator<string> {
  yield `{"format":"${archiveFormat}",\n"workspace":${JSON.stringify(whole.workspace)}`
  for (const list of lists) {
    let separator = `,\n"${list}":[\n`
    for (const item of whole[list]) {
      yield separator + writeItem(item)
      separator = ",\n"
    }
    yield whole[list].length === 0 ? `,\n"${list}":[]` : "\n]"
  }
  yield end
}

/** The minimum number of characters of each chunk except the last. */
const chunkLength = 1024 * 1024

/** Encodes a workspace as the text of an archive, in chunks. Fails if the text is too large for an import. */
export const encodeArchive = (
  whole: WholeWorkspace
): Result.Result<ReadonlyArray<Uint8Array>, ArchiveTooLarge> => {
  const chunks: Array<Uint8Array> = []
  let text = ""
  let bytes = 0
  for (const piece of writeArchive(whole)) {
    text += piece
    if (text.length < chunkLength && piece !== end) continue
    const chunk = new TextEncoder().encode(text)
    bytes += chunk.length
    if (bytes > maxArchiveBytes) return Result.fail(ArchiveTooLarge)
    chunks.push(chunk)
    text = ""
  }
  return Result.succeed(chunks)
}
