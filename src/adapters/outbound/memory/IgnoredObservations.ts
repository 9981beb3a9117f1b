import * as Layer from "effect/Layer"
import { Observations } from "../../../application/ports/Observations.ts"

/** Ignores all observations. */
export const layer: Layer.Layer<Observations> = Layer.succeed(Observations, {
  recordRateLimitDenial: () => {},
  recordCacheLookup: () => {},
  recordOutageResponse: () => {},
  setOutageSecondsLeft: () => {}
})
