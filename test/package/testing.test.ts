import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Admission, defaultRateLimits } from "../../src/application/access/Admission.ts"
import { Prompts } from "../../src/application/reading/Prompts.ts"
import { importArchive, memoryLayer } from "../../src/testing.ts"
import { makeDemoTenant } from "../api/startApi.ts"

const { archive, key } = makeDemoTenant()
const listed = archive.prompts.filter(({ is_archived }) => !is_archived).length

const services = Layer.mergeAll(Prompts.layer, Admission.layer(defaultRateLimits)).pipe(
  Layer.provideMerge(memoryLayer)
)

const listTotal = Effect.gen(function* () {
  const admission = yield* Admission
  const prompts = yield* Prompts
  const caller = yield* admission.admit(key)
  return (yield* prompts.list(caller, {}, { page: 1, per_page: 1 })).total
})

describe("prompt-retrieval/testing", () => {
  it.effect("importArchive fills only the store of its caller, and each new store is empty", () =>
    Effect.gen(function* () {
      const filled = Effect.andThen(importArchive(archive), listTotal)
      const provided = <A, E>(program: Effect.Effect<A, E, Layer.Success<typeof services>>) =>
        Effect.provide(program, Layer.fresh(services))
      assert.strictEqual(yield* provided(filled), listed)
      assert.deepStrictEqual(yield* Effect.flip(provided(listTotal)), { _tag: "InvalidKey" })
      assert.strictEqual(yield* provided(filled), listed)
    })
  )

  it.effect("importArchive fails with the problems of an invalid archive and stores nothing", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(importArchive({ ...archive, tags: [{}] }))
      assert.strictEqual(error._tag, "InvalidContent")
      assert.deepStrictEqual(yield* Effect.flip(listTotal), { _tag: "InvalidKey" })
    }).pipe(Effect.provide(services))
  )
})
