import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { SecureRandom } from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type ApiKey, type ApiKeyId, hashApiKey, keyEnds, makeApiKey, type UserId } from "../domain/ApiKey.ts"
import type { WorkspaceId } from "../domain/Prompt.ts"
import { timestampOf } from "../domain/Timestamp.ts"
import { type Archive, BadArchive, parseArchive } from "./Archive.ts"
import type { Unavailable } from "./Unavailable.ts"
import { type WorkspaceNotFound, WorkspaceStore } from "./WorkspaceStore.ts"

/** A key just issued; its plaintext exists here and nowhere else (SPEC.md section 5.4). */
export interface IssuedKey {
  readonly id: ApiKeyId
  readonly key: ApiKey
}

/** What operators do (DESIGN.md section 9). */
export class Administration extends Context.Service<
  Administration,
  {
    /** Whether there is no workspace yet. */
    readonly isEmpty: Effect.Effect<boolean, Unavailable>
    /**
     * Imports a workspace archive, given as the bytes of its file: all or nothing, and the same again changes
     * nothing. Gives what was imported.
     */
    readonly importArchive: (bytes: Uint8Array) => Effect.Effect<Archive, BadArchive | Unavailable>
    /** Issues a key of a workspace to the user with this email, who is added when unknown. */
    readonly issueKey: (
      workspace: WorkspaceId,
      email: string,
      name: string
    ) => Effect.Effect<IssuedKey, WorkspaceNotFound | Unavailable>
  }
>()("prompt-retrieval/Administration") {
  static readonly layer: Layer.Layer<Administration, never, WorkspaceStore | SecureRandom> = Layer.effect(
    Administration,
    Effect.gen(function* () {
      const store = yield* WorkspaceStore
      const random = yield* SecureRandom

      return Administration.of({
        isEmpty: Effect.map(store.count, (count) => count === 0),
        importArchive: Effect.fn("Administration.importArchive")(function* (bytes: Uint8Array) {
          const json = yield* Effect.try({ try: () => parseJson(bytes), catch: notJson })
          const archive = yield* Effect.fromResult(parseArchive(json))
          yield* store.importArchive(archive)
          return archive
        }),
        issueKey: Effect.fn("Administration.issueKey")(function* (
          workspace: WorkspaceId,
          email: string,
          name: string
        ) {
          const key = makeApiKey(yield* random.randomBytes(32))
          const id = (yield* random.uuidV7()) as ApiKeyId
          const newUserId = (yield* random.uuidV7()) as UserId
          const created_at = timestampOf(yield* Clock.currentTimeMillis)
          yield* store.addKey(
            workspace,
            { email, newUserId },
            { id, name, key_hash: hashApiKey(key), ...keyEnds(key), created_at }
          )
          return { id, key }
        })
      })
    })
  )
}

const parseJson = (bytes: Uint8Array): unknown =>
  JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))

const notJson = (error: unknown): BadArchive =>
  BadArchive([
    {
      path: "",
      message: `is not a JSON document in UTF-8: ${error instanceof Error ? error.message : String(error)}`
    }
  ])
