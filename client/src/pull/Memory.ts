import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** Returns V8's function that collects garbage, or a function without effect in another runtime. */
const findCollector = (): (() => void) => {
  try {
    setFlagsFromString("--expose-gc")
    // The space of new objects, of which V8 keeps several copies, stays at its initial size.
    setFlagsFromString("--semi-space-growth-factor=1")
    return runInNewContext("gc")
  } catch {
    return () => {}
  }
}

/**
 * Collects garbage. V8 lets the heap grow to several times the size of what is in use before it collects garbage,
 * because it knows neither that `pull` waits for the network most of the time nor how little memory a build machine has.
 */
export const collectGarbage: () => void = findCollector()
