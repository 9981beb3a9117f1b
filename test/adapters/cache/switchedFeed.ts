import * as Layer from "effect/Layer"
import { ChangeFeed, type Changes } from "../../../src/application/ChangeFeed.ts"

/** A feed of changes that a test makes, up or down as it says. */
export const switchedFeed = (changes: Changes) => {
  const state = { isUp: true }
  const layer = Layer.succeed(ChangeFeed, {
    now: () => (state.isUp ? changes.now() : undefined),
    lastChange: (workspace) => (state.isUp ? changes.lastChange(workspace) : undefined)
  })
  return Object.assign(state, { layer })
}
