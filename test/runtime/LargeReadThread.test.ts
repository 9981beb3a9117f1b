import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { makeEndpoints } from "../../src/adapters/inbound/http/Endpoints.ts"
import { LargeReads, withLargeReads } from "../../src/adapters/inbound/http/LargeReads.ts"
import { Database } from "../../src/adapters/outbound/postgres/Database.ts"
import { migrate } from "../../src/adapters/outbound/postgres/Migrations.ts"
import * as PostgresPromptRepo from "../../src/adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as PostgresWorkspaceStore from "../../src/adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import { Prompts } from "../../src/application/Prompts.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import * as LargeReadThread from "../../src/runtime/LargeReadThread.ts"
import { archive, fragment, prompt, toPartStream, fragmentBinding, version } from "../support/archives.ts"
import { freshDatabase, toDatabaseUrl } from "../support/postgres.ts"

const text = 'é "quoted" 😀\n'.repeat(60_000)
const snippet = fragment(`{{name}}${text}`)
const large = prompt({
  current_content: text,
  description: text,
  fragments: [fragmentBinding(snippet, 1)],
  versions: [version(1, { content: text, change_summary: text })]
})
/** Its rows are small; its resolved content is large. */
const template = fragment("{{a}}".repeat(1_500))
const amplified = prompt({
  fragments: [{ ...fragmentBinding(template, 1), variable_overrides: { a: "x".repeat(1_000) } }]
})
const small = prompt({})
const home = archive({ fragments: [snippet, template], prompts: [large, amplified, small] })
const caller = { workspaceId: home.workspace.id as WorkspaceId, tier: "team" }

const list = "/api/v1/prompts"
const one = `${list}/:id`
const reads: ReadonlyArray<
  readonly [route: string, params: Readonly<Record<string, string>>, query: string]
> = [
  [list, {}, "per_page=7"],
  [one, { id: large.id }, ""],
  [`${one}/resolved`, { id: large.id }, ""],
  [`${one}/resolved`, { id: amplified.id }, ""],
  [`${one}/versions`, { id: large.id }, ""],
  [`${one}/versions/:version`, { id: large.id, version: "1" }, ""]
]

const failingProgram = new URL("./fixtures/failingWorker.ts", import.meta.url)
const missingProgram = new URL("./fixtures/missing.ts", import.meta.url)

/** Runs `test` with the endpoints of a service and the thread that runs `program`. */
const withThread = <A, E>(
  test: (services: {
    /** The endpoints without the thread, and with it. */
    readonly mainThread: Effect.Success<typeof makeEndpoints>
    readonly offloaded: Effect.Success<typeof makeEndpoints>
    readonly thread: NonNullable<typeof LargeReads.Service>
  }) => Effect.Effect<A, E>,
  program?: URL
) =>
  Effect.gen(function* () {
    const options = { url: Redacted.make(toDatabaseUrl(yield* freshDatabase)) }
    const services = Layer.mergeAll(
      Prompts.layer.pipe(Layer.provide(PostgresPromptRepo.layer)),
      PostgresWorkspaceStore.layer,
      LargeReadThread.layer(program)
    ).pipe(Layer.provide(Layer.effectDiscard(Effect.orDie(migrate))), Layer.provide(Database.layer(options)))
    return yield* Effect.gen(function* () {
      yield* (yield* WorkspaceStore).importWorkspace(toPartStream(home))
      const mainThread = yield* makeEndpoints
      return yield* test({
        mainThread,
        offloaded: yield* withLargeReads(mainThread),
        thread: (yield* LargeReads)!
      })
    }).pipe(Effect.provide(services))
  }).pipe(Effect.scoped)

describe("the thread for large reads", () => {
  it.live("responds to every endpoint with the same bytes as the main thread", () =>
    withThread(({ mainThread, offloaded, thread }) =>
      Effect.gen(function* () {
        for (const [route, params, query] of reads) {
          const matched = { route, params, query }
          const expected = yield* mainThread.get(route)!(caller, matched)
          assert.isAbove(expected.body.length, 256 * 1024)
          for (const read of [offloaded.get(route)!(caller, matched), thread.respond({ caller, matched })]) {
            const { body, etag, promptVersion } = yield* read
            assert.strictEqual(etag, expected.etag)
            assert.strictEqual(promptVersion, expected.promptVersion)
            assert.isTrue(Buffer.from(expected.body).equals(body), route)
          }
        }
      })
    )
  )

  it.live("responds with the errors of an endpoint, and reads only the caller's workspace", () =>
    withThread(({ thread }) =>
      Effect.gen(function* () {
        const matched = { route: one, params: { id: large.id }, query: "" }
        const stranger = { ...caller, workspaceId: crypto.randomUUID() as WorkspaceId }
        assert.deepStrictEqual(yield* Effect.flip(thread.respond({ caller: stranger, matched })), {
          _tag: "PromptNotFound"
        })
        const free = { ...caller, tier: "free" }
        const versions = { route: list, params: {}, query: "page=x" }
        const error = yield* Effect.flip(thread.respond({ caller: free, matched: versions }))
        assert.strictEqual(error._tag, "InvalidParameter")
      })
    )
  )

  it.live("serves other reads after one was interrupted", () =>
    withThread(({ thread }) =>
      Effect.gen(function* () {
        const matched = { route: one, params: { id: large.id }, query: "" }
        const fibers = []
        for (let i = 0; i < 20; i++) fibers.push(yield* Effect.forkChild(thread.respond({ caller, matched })))
        yield* Effect.sleep("20 millis")
        yield* Effect.forEach(fibers.slice(1), (fiber) => Fiber.interrupt(fiber), { discard: true })
        assert.isTrue(Exit.isSuccess(yield* Fiber.await(fibers[0]!)))
        assert.isAbove((yield* thread.respond({ caller, matched })).body.length, text.length)
      })
    )
  )

  it.live("endpoints leave large reads to the thread, and no others", () =>
    withThread(({ mainThread }) =>
      Effect.gen(function* () {
        let count = 0
        const respond = () =>
          Effect.suspend(() => Effect.fail({ _tag: "InternalError", count: ++count } as const))
        const offloaded = yield* Effect.provideService(withLargeReads(mainThread), LargeReads, { respond })
        for (const [route, params, query] of reads)
          yield* Effect.flip(offloaded.get(route)!(caller, { route, params, query }))
        assert.strictEqual(count, reads.length)
        yield* offloaded.get(one)!(caller, { route: one, params: { id: small.id }, query: "" })
        assert.strictEqual(count, reads.length)
      })
    )
  )

  it.live("closing waits for the reads in flight", () =>
    Effect.gen(function* () {
      const fiber = yield* withThread(({ thread }) =>
        Effect.gen(function* () {
          const matched = { route: one, params: { id: large.id }, query: "" }
          const fiber = yield* Effect.forkDetach(thread.respond({ caller, matched }), {
            startImmediately: true
          })
          return fiber
        })
      )
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
    })
  )

  it.live("a process that may not start threads runs large reads in the main thread", () =>
    withThread(
      ({ mainThread, offloaded }) =>
        Effect.gen(function* () {
          const matched = { route: one, params: { id: large.id }, query: "" }
          const expected = yield* mainThread.get(one)!(caller, matched)
          assert.strictEqual((yield* offloaded.get(one)!(caller, matched)).etag, expected.etag)
        }),
      new URL("http://127.0.0.1/worker.js")
    )
  )

  it.live("if the thread fails, its reads fail, and the next read starts a new thread", () =>
    withThread(
      ({ thread }) =>
        Effect.gen(function* () {
          const matched = { route: one, params: { id: large.id }, query: "" }
          for (let i = 0; i < 3; i++) {
            const exits = yield* Effect.forEach(
              [1, 2],
              () => Effect.exit(thread.respond({ caller, matched })),
              { concurrency: 2 }
            )
            for (const exit of exits)
              assert.isTrue(Exit.isFailure(exit) && String(Cause.squash(exit.cause)).includes("code 3"))
          }
        }),
      failingProgram
    )
  )

  it.live("large reads run in the main thread if the worker thread cannot start", () =>
    withThread(
      ({ mainThread, offloaded }) =>
        Effect.gen(function* () {
          for (const [route, params, query] of reads) {
            const matched = { route, params, query }
            const expected = yield* mainThread.get(route)!(caller, matched)
            assert.strictEqual((yield* offloaded.get(route)!(caller, matched)).etag, expected.etag)
          }
        }),
      missingProgram
    )
  )
})
