import * as Layer from "effect/Layer"
import { FeedState, readClocks } from "../../../src/application/cache/FeedState.ts"
import { ChangeFeed, type ClockReading } from "../../../src/application/ports/ChangeFeed.ts"

const forever = { monotonic: Number.POSITIVE_INFINITY, wall: Number.POSITIVE_INFINITY }

/** A change feed for tests that never loses contact and never detects a pause. `isUp` sets whether the feed is up. */
export class SwitchedFeed extends FeedState {
  override lease: ClockReading | undefined = forever
  readonly layer = Layer.succeed(ChangeFeed, this)

  constructor() {
    super(0)
    Object.defineProperties(this, { lastContact: { get: readClocks }, running: { get: readClocks } })
  }

  get isUp(): boolean {
    return this.lease !== undefined
  }
  set isUp(isUp: boolean) {
    this.lease = isUp ? forever : undefined
  }
}
