import type { Vitest } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * Makes a function that registers tests whose bodies are generators, like the argument of `Effect.gen`. Each test gets
 * separate instances of the layer's services.
 */
export const makeTest =
  <R, ROut = never>(
    tester: Vitest.Tester<R>,
    layer: Layer.Layer<ROut, unknown> = Layer.empty as Layer.Layer<never> as Layer.Layer<ROut>
  ) =>
  (title: string, body: () => Effect.fn.Return<void, unknown, R | ROut>): void =>
    tester(title, () => Effect.provide(Effect.gen(body), layer) as Effect.Effect<void, unknown, R>)
