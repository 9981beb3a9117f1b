import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { readInstant } from "../../../../application/Clocks.ts"
import { ChangeFeed } from "../../../../application/ports/ChangeFeed.ts"
import { WorkspaceRevisions } from "../../../../application/WorkspaceRevisions.ts"
import { setChangeFeedUp } from "../ChangeFeedMetric.ts"
import { channel, recordChange } from "../NotifyChannel.ts"
import type { ServedPostgres } from "./EmbeddedPostgres.ts"

/**
 * The change feed of an embedded database that this process serves. It is always up: every notification arrives
 * before the response to the statement that caused it.
 */
export const layer = (served: ServedPostgres): Layer.Layer<ChangeFeed> =>
  Layer.effect(
    ChangeFeed,
    Effect.gen(function* () {
      const revisions = new WorkspaceRevisions()
      yield* served.listen(channel, {
        onNotification: (payload) => recordChange(revisions, payload),
        onGap: () => revisions.invalidateAll()
      })
      yield* setChangeFeedUp(true)
      return ChangeFeed.of({
        revision: () => revisions.revision(),
        revisionOf: (id) => revisions.revisionOf(id),
        lastContact: () => ({
          at: readInstant(),
          revisionOf: (id) => revisions.revisionOf(id)
        })
      })
    })
  )
