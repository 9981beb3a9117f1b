import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Memory from "../../../src/adapters/outbound/memory/Memory.ts"
import { storeArchive } from "../../../src/adapters/outbound/memory/MemoryState.ts"
import type { Archive } from "../../../src/application/formats/Archive.ts"
import { Prompts } from "../../../src/application/reading/Prompts.ts"
import { PromptRepo } from "../../../src/application/ports/PromptRepo.ts"
import { PromptNotFound } from "../../../src/domain/Prompt.ts"
import { toTimestamp } from "../../../src/domain/Timestamp.ts"
import { VersionNotFound } from "../../../src/domain/Version.ts"
import { archive, prompt, version } from "../../support/archives.ts"

/** The names of the repository's methods that were called, in order. */
class Calls extends Context.Service<Calls, Array<PropertyKey>>()("test/Calls") {
  static readonly layer = Layer.sync(Calls, () => [])
}

/** Records the calls of the repository. */
const recordingRepo = Layer.effect(
  PromptRepo,
  Effect.gen(function* () {
    const calls = yield* Calls
    return new Proxy(yield* PromptRepo, {
      get:
        (repo, name) =>
        (...args: Array<unknown>) => {
          calls.push(name)
          return Reflect.apply(Reflect.get(repo, name), repo, args)
        }
    })
  })
)

const layer = Prompts.layer.pipe(
  Layer.provide(recordingRepo),
  Layer.provideMerge(Layer.mergeAll(Memory.layer, Calls.layer))
)

const toCaller = ({ workspace }: Archive, tier: string = workspace.tier) => ({
  workspaceId: workspace.id,
  tier
})

const everything = { page: 1, per_page: 100 }

describe("Prompts", () => {
  const malformed = [
    "",
    "1",
    "not-a-uuid",
    "00000000000000000000000000000000",
    "{00000000-0000-0000-0000-000000000000}",
    "00000000-0000-0000-0000-00000000000g",
    "00000000-0000-0000-0000-000000000000\n",
    "00000000-0000-0000-0000-000000000000\0",
    "' or 1=1 --"
  ]

  it.effect.prop(
    "a read with a malformed id fails with PromptNotFound or VersionNotFound, without a query",
    { id: Schema.Union([Schema.Literals(malformed), Schema.String]) },
    Effect.fnUntraced(function* ({ id }) {
      const caller = toCaller(archive())
      const [prompts, calls] = [yield* Prompts, yield* Calls]
      assert.deepStrictEqual(yield* Effect.flip(prompts.get(caller, id)), PromptNotFound)
      assert.deepStrictEqual(yield* Effect.flip(prompts.getResolved(caller, id)), PromptNotFound)
      assert.deepStrictEqual(yield* Effect.flip(prompts.listVersions(caller, id, everything)), PromptNotFound)
      assert.deepStrictEqual(yield* Effect.flip(prompts.getVersion(caller, id, "1")), VersionNotFound)
      assert.deepStrictEqual(calls, [])
    }, Effect.provide(layer))
  )

  it.effect(
    "a read with a malformed version number fails without a query, and a well-formed number takes one query",
    () =>
      Effect.gen(function* () {
        const [prompts, calls] = [yield* Prompts, yield* Calls]
        const own = archive({ prompts: [prompt({ versions: [version(1)] })] })
        yield* storeArchive(own)
        const id = own.prompts[0]!.id
        for (const number of ["", "01", "2147483648", "latest"]) {
          assert.deepStrictEqual(
            yield* Effect.flip(prompts.getVersion(toCaller(own), id, number)),
            VersionNotFound,
            number
          )
        }
        assert.deepStrictEqual(calls, [])
        yield* prompts.getVersion(toCaller(own), id, "1")
        yield* Effect.flip(prompts.getVersion(toCaller(own), id, "2147483647"))
        assert.deepStrictEqual(calls, ["getVersion", "getVersion"])
      }).pipe(Effect.provide(layer))
  )

  it.effect(
    "a Free caller can read only the versions of the last seven days, and a Solo caller can read every version",
    () =>
      Effect.gen(function* () {
        const prompts = yield* Prompts
        const now = Date.UTC(2026, 5, 15, 12)
        const cutoff = now - 7 * 24 * 60 * 60 * 1000
        const one = prompt({
          versions: [cutoff - 1, cutoff].map((millis, index) =>
            version(index + 1, { created_at: toTimestamp(millis) })
          )
        })
        const own = archive({ prompts: [one] })
        yield* storeArchive(own)

        const numbersFor = Effect.fnUntraced(function* (tier: string) {
          const caller = toCaller(own, tier)
          const { items, total } = yield* prompts.listVersions(caller, one.id, everything)
          const numbers = items.map(({ version_number }) => Number(version_number))
          assert.strictEqual(total, numbers.length)
          for (const { version_number } of one.versions) {
            const read = yield* Effect.result(prompts.getVersion(caller, one.id, String(version_number)))
            assert.strictEqual(read._tag === "Success", numbers.includes(version_number))
            if (read._tag === "Failure") assert.deepStrictEqual(read.failure, VersionNotFound)
          }
          return numbers
        })

        yield* TestClock.setTime(now)
        assert.deepStrictEqual(yield* numbersFor("free"), [2])
        assert.deepStrictEqual(yield* numbersFor("solo"), [2, 1])
      }).pipe(Effect.provide(layer))
  )
})
