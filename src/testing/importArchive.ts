import * as Effect from "effect/Effect"
import { type MemoryState, storeArchive } from "../adapters/outbound/memory/MemoryState.ts"
import { decodeArchive } from "../application/transfer/ArchiveDecoder.ts"
import type { InvalidContent } from "../domain/WorkspaceContent.ts"

/**
 * Adds a workspace with its users and keys to the in-memory store. If the workspace exists, its content is replaced. If
 * the archive is invalid, fails with `InvalidContent` and changes nothing. Does not check whether the ids, emails and
 * keys are unique among all workspaces of the store.
 *
 * @param archive The parsed JSON of a workspace archive, such as `prompt-retrieval export` writes.
 */
export const importArchive = (archive: unknown): Effect.Effect<void, InvalidContent, MemoryState> =>
  Effect.flatMap(
    Effect.suspend(() => Effect.fromResult(decodeArchive(archive))),
    storeArchive
  )
