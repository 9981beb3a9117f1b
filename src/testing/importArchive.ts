import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Administration } from "../application/administration/Administration.ts"
import { toRawParts } from "../application/formats/RawPart.ts"
import type { Unavailable } from "../application/ports/Unavailable.ts"
import type { WorkspaceStore } from "../application/ports/WorkspaceStore.ts"
import type { InvalidContent } from "../domain/workspace/Problem.ts"

/**
 * Adds a workspace to the store. If the workspace exists, its content is replaced. If `prompt-retrieval import` would
 * reject the archive, fails with `InvalidContent` and changes nothing.
 *
 * @param archive The parsed JSON of a workspace archive, such as `prompt-retrieval export` writes.
 */
export const importArchive = (
  archive: unknown
): Effect.Effect<void, InvalidContent | Unavailable, WorkspaceStore> =>
  Administration.use((administration) =>
    administration.importArchive(Stream.suspend(() => Stream.fromIterable(toRawParts(archive))))
  ).pipe(
    Effect.asVoid,
    // The layer is built for each call: a memoized layer would keep the store of the first call.
    Effect.provide(Administration.layer.pipe(Layer.provide(NodeCrypto.layerSecureRandom)), { local: true })
  )
