import type * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

const changeFeedUp = Metric.gauge("prompt_retrieval_change_feed_up", {
  description: "1 while the change feed is up, 0 while it is down and nothing is cached"
})

/** Records whether the change feed is up. */
export const setChangeFeedUp = (isUp: boolean): Effect.Effect<void> =>
  Metric.update(changeFeedUp, isUp ? 1 : 0)
