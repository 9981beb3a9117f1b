import * as Result from "effect/Result"
import type { WholeWorkspace } from "../../domain/Workspace.ts"
import { ArchiveTooLarge } from "../../domain/WorkspaceContent.ts"
import { archiveFormat, archiveLists, maxArchiveBytes } from "./Archive.ts"

/**
 * Returns the JSON of one item. Omits the `expires_at` of a key that never expires, so that older versions of the
 * program can import the archive.
 */
const writeItem = (item: object): string =>
  JSON.stringify("expires_at" in item && item.expires_at === null ? { ...item, expires_at: undefined } : item)

/** Writes a workspace as the text of an archive, in pieces. Each item of a list is on its own line, for readable diffs. */
export function* writeArchive(whole: WholeWorkspace): Generator<string> {
  yield `{"format":"${archiveFormat}",\n"workspace":${JSON.stringify(whole.workspace)}`
  for (const list of archiveLists) {
    let separator = `,\n"${list}":[\n`
    for (const item of whole[list]) {
      yield separator + writeItem(item)
      separator = ",\n"
    }
    yield whole[list].length === 0 ? `,\n"${list}":[]` : "\n]"
  }
  yield "}\n"
}

/** The minimum number of characters of a chunk, except the last. */
const chunkLength = 1024 * 1024

/** Encodes a workspace as the text of an archive, in chunks. Fails if the text is too large for an import. */
export const encodeArchive = (
  whole: WholeWorkspace
): Result.Result<ReadonlyArray<Uint8Array>, ArchiveTooLarge> => {
  const chunks: Array<Uint8Array> = []
  const encoder = new TextEncoder()
  let text = ""
  let bytes = 0
  const encode = () => {
    const chunk = encoder.encode(text)
    chunks.push(chunk)
    bytes += chunk.length
    text = ""
  }
  for (const piece of writeArchive(whole)) {
    text += piece
    if (text.length >= chunkLength) encode()
    if (bytes > maxArchiveBytes) return Result.fail(ArchiveTooLarge)
  }
  encode()
  return bytes > maxArchiveBytes ? Result.fail(ArchiveTooLarge) : Result.succeed(chunks)
}
