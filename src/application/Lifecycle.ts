import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

/** Where the service is in its life: it reads nothing before its database is migrated, and wants nothing new once it drains. */
export interface LifecycleState {
  phase: "starting" | "serving" | "draining"
}

/** The state of this service; who does not start and stop one is always serving. */
export const Lifecycle = Context.Reference<LifecycleState>("prompt-retrieval/Lifecycle", {
  defaultValue: () => Object.freeze<LifecycleState>({ phase: "serving" })
})

/** A service that starts. */
export const layer = Layer.sync(Lifecycle, (): LifecycleState => ({ phase: "starting" }))
