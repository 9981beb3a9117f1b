import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { ChangeFeed, Changes } from "../../application/ChangeFeed.ts"
import { changeFeedUp } from "../../application/Metrics.ts"
import type { ServedPostgres } from "./EmbeddedPostgres.ts"

/**
 * Hears of the changes of an embedded database that this process serves, whoever makes them: the database's notices
 * come before the answer to what caused them. `channel` and `everything` are what its triggers say.
 */
export const layer = (
  served: ServedPostgres,
  { channel, everything }: { readonly channel: string; readonly everything: string }
): Layer.Layer<ChangeFeed> =>
  Layer.effect(
    ChangeFeed,
    Effect.gen(function* () {
      const changes = new Changes()
      yield* served.listen(channel, {
        notice: (payload) => (payload === everything ? changes.addAll() : changes.add(payload)),
        gap: () => changes.addAll()
      })
      yield* Metric.update(changeFeedUp, 1)
      return ChangeFeed.of({ now: () => changes.now(), lastChange: (id) => changes.lastChange(id) })
    })
  )
