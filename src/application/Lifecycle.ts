import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** In the phase `starting`, the database is not migrated yet. In the phase `draining`, the service is shutting down. */
export type Phase = "starting" | "serving" | "draining"

/** The phase of this service, from start to shutdown. A phase that has ended never starts again. */
export class Lifecycle extends Context.Service<
  Lifecycle,
  {
    readonly phase: () => Phase
    /** Starts the phase `serving`. Called when the database is ready. Has no effect after `markDraining`. */
    readonly markServing: Effect.Effect<void>
    /** Starts the phase `draining`. A service that is still starting stays in the phase `starting`. */
    readonly markDraining: Effect.Effect<void>
  }
>()("prompt-retrieval/application/Lifecycle") {
  static readonly #layer = (initial: Phase): Layer.Layer<Lifecycle> =>
    Layer.sync(Lifecycle, () => {
      let phase = initial
      let isDraining = false
      return {
        phase: () => phase,
        markServing: Effect.sync(() => {
          if (!isDraining) phase = "serving"
        }),
        markDraining: Effect.sync(() => {
          isDraining = true
          if (phase === "serving") phase = "draining"
        })
      }
    })

  /** The lifecycle of a service that waits for its database. */
  static readonly starting: Layer.Layer<Lifecycle> = Lifecycle.#layer("starting")

  /** The lifecycle of a service whose database is known to be ready. */
  static readonly serving: Layer.Layer<Lifecycle> = Lifecycle.#layer("serving")
}
