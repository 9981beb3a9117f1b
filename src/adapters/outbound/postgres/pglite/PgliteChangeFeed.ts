import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ChangeFeed, WorkspaceRevisions } from "../../../../application/ports/ChangeFeed.ts"
import { setChangeFeedUp } from "../ChangeFeedMetric.ts"
import type { ServedPostgres } from "./EmbeddedPostgres.ts"

/**
 * Hears of the changes of an embedded database that this process serves, whoever makes them: the database's notices
 * come before the answer to what caused them. `channel` and `everything` are what its triggers say.
 */
export const layer = (
  served: ServedPostgres,
  { channel, allWorkspaces }: { readonly channel: string; readonly allWorkspaces: string }
): Layer.Layer<ChangeFeed> =>
  Layer.effect(
    ChangeFeed,
    Effect.gen(function* () {
      const changes = new WorkspaceRevisions()
      yield* served.listen(channel, {
        onNotification: (payload) =>
          payload === allWorkspaces ? changes.invalidateAll() : changes.invalidate(payload),
        onGap: () => changes.invalidateAll()
      })
      yield* setChangeFeedUp(true)
      return ChangeFeed.of({ revision: () => changes.revision(), revisionOf: (id) => changes.revisionOf(id) })
    })
  )
