import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as RcMap from "effect/RcMap"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { historyCutoff } from "../domain/Billing.ts"
import type { Page } from "../domain/Page.ts"
import { type PromptId, PromptNotFound, type ResolvedPrompt } from "../domain/Prompt.ts"
import { decodePromptReference, type PromptReference, parsePromptReference } from "../domain/PromptName.ts"
import {
  countSourceBytes,
  PageTooLarge,
  type ResolutionSource,
  ResolvedTooLarge,
  resolve
} from "../domain/Resolution.ts"
import { sizes } from "../domain/Sizes.ts"
import { parseVersionNumber, VersionNotFound } from "../domain/Version.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import type { Caller } from "./Admission.ts"
import { withSpans } from "./observability/Instrumentation.ts"
import { type FoundSource, type PromptFilter, PromptRepo } from "./ports/PromptRepo.ts"
import { Unavailable } from "./ports/Unavailable.ts"

/** The maximum size of the resolved items of a response as JSON, in bytes. The envelope takes at most 128 bytes. */
const maxPageBytes = sizes.contentBytes - 128

/** Logs the ids of prompts whose resolved content is too large. */
const logTooLarge = (...ids: ReadonlyArray<PromptId>): Effect.Effect<void> =>
  Effect.logWarning("Resolved content is too large", { prompt_id: ids.join(" ") })

/** A resolved prompt, and the number of the version that was resolved. */
export interface ResolvedVersion {
  readonly prompt: ResolvedPrompt
  readonly current_version: number
}

/** One of several resolved prompts. */
export interface ResolvedItem extends ResolvedVersion {
  /** The text that addressed the prompt or, on a page of the list, the prompt's name. */
  readonly name: string
}

/**
 * The reads of specification 4, and reads of several resolved prompts, for HTTP, MCP and embedders. `text` is an
 * unparsed id or name (`parsePromptReference`), and `number` is an unparsed version number. A read with a malformed text
 * sends no query, and fails like a read of an unknown prompt or version.
 */
export class Prompts extends Context.Service<Prompts>()("prompt-retrieval/application/Prompts", {
  make: Effect.gen(function* () {
    const repo = yield* PromptRepo
    const gate = yield* ReadGate
    /** Resolves a prompt as one step of its read. */
    const resolveSource = (source: ResolutionSource) =>
      Effect.flatMap(
        gate.runStep(countSourceBytes(source), () => resolve(source)),
        Effect.fromResult
      )

    const parsePrompt = (text: string): Effect.Effect<PromptReference, PromptNotFound> =>
      Effect.mapError(Effect.fromResult(decodePromptReference(text)), () => PromptNotFound)

    const getResolvedVersion = (caller: Caller, text: string) =>
      parsePrompt(text).pipe(
        Effect.flatMap((prompt) => repo.getSource(caller.workspaceId, prompt)),
        Effect.flatMap((source) =>
          Effect.map(resolveSource(source), (prompt) => ({
            prompt,
            current_version: source.current_version
          }))
        ),
        Effect.tapErrorTag("ResolvedTooLarge", ({ id }) => logTooLarge(id))
      )

    /** Resolves one of several prompts. Fails if the prompt is too large on its own. */
    const resolveOne = Effect.fnUntraced(function* ({ source, name }: FoundSource) {
      const found = yield* Effect.fromResult(source)
      const prompt = yield* resolveSource(found)
      const item: ResolvedItem = { prompt, name, current_version: found.current_version }
      const bytes = yield* gate.runStep(prompt.resolved_content.length, () =>
        Buffer.byteLength(JSON.stringify(item))
      )
      return bytes > maxPageBytes ? yield* Effect.fail(ResolvedTooLarge(prompt.id)) : { item, bytes }
    })

    const resolveAll = Effect.fnUntraced(function* (
      { workspaceId }: Caller,
      references: ReadonlyArray<PromptReference>,
      /** The names of the items; by default, the shortest name of each prompt. */
      names?: ReadonlyArray<string>
    ) {
      const sources = references.length === 0 ? [] : yield* repo.getSources(workspaceId, references)
      const items: Array<ResolvedItem> = []
      const tooLarge = new Set<PromptId>()
      let bytes = 0
      for (const found of sources) {
        const name = names?.[found.index] ?? found.name
        const resolved = yield* Effect.result(resolveOne({ ...found, name }))
        if (Result.isFailure(resolved)) {
          tooLarge.add(resolved.failure.id)
          continue
        }
        bytes += resolved.success.bytes
        // The loop ends here, because the remaining prompts could need a hundred times the memory of a response.
        if (bytes > maxPageBytes) break
        items.push(resolved.success.item)
      }
      if (tooLarge.size > 0) yield* logTooLarge(...tooLarge)
      if (bytes > maxPageBytes) return yield* Effect.fail(PageTooLarge)
      return items as ReadonlyArray<ResolvedItem>
    })

    return yield* withSpans("Prompts", {
      list: (caller: Caller, filter: PromptFilter, page: Page) => repo.list(caller.workspaceId, filter, page),

      /** Lists a page of the prompts with their names, in the order of `list`. */
      listNamed: (caller: Caller, page: Page) => repo.listNamed(caller.workspaceId, page),

      get: (caller: Caller, text: string) =>
        Effect.flatMap(parsePrompt(text), (prompt) => repo.get(caller.workspaceId, prompt)),

      getResolved: (caller: Caller, text: string) =>
        Effect.map(getResolvedVersion(caller, text), ({ prompt }) => prompt),

      /** Reads a resolved prompt and, from the same snapshot, the number of its version. */
      getResolvedVersion,

      /** Resolves the prompts of one page of `list`, in the same order. The limits of `getManyResolved` apply. */
      listResolved: Effect.fnUntraced(function* (caller: Caller, filter: PromptFilter, page: Page) {
        const { items, total } = yield* repo.list(caller.workspaceId, filter, page)
        const ids = items.map(({ id }) => id)
        return { items: yield* resolveAll(caller, ids), total }
      }),

      /**
       * Resolves up to 100 prompts in the given order. Leaves out a text that is not the id or the name of a prompt.
       * Also leaves out a prompt that is too large on its own, and logs its id. Fails if the JSON of all prompts
       * together would exceed `sizes.contentBytes`.
       */
      getManyResolved: (caller: Caller, texts: ReadonlyArray<string>) => {
        const parsed = texts.map(parsePromptReference)
        return resolveAll(
          caller,
          parsed.flatMap((reference) => reference ?? []),
          texts.filter((_, index) => parsed[index] !== undefined)
        )
      },

      listVersions: Effect.fnUntraced(function* (caller: Caller, text: string, page: Page) {
        const prompt = yield* parsePrompt(text)
        const now = yield* Clock.currentTimeMillis
        return yield* repo.listVersions(caller.workspaceId, prompt, historyCutoff(caller.tier, now), page)
      }),

      getVersion: Effect.fnUntraced(function* (caller: Caller, text: string, number: string) {
        const prompt = parsePromptReference(text)
        const version = parseVersionNumber(number)
        if (prompt === undefined || version === undefined) return yield* Effect.fail(VersionNotFound)
        const now = yield* Clock.currentTimeMillis
        const oldest = historyCutoff(caller.tier, now)
        return yield* repo.getVersion(caller.workspaceId, prompt, version, oldest)
      })
    })
  })
}) {
  /** Provides the use cases, and the `ReadGate` that the use cases share with the adapters. */
  static readonly layer: Layer.Layer<Prompts | ReadGate, never, PromptRepo> = Layer.suspend(() =>
    Layer.effect(Prompts, Prompts.make).pipe(Layer.provideMerge(ReadGate.layer))
  )
}

// The limits of reads: their time, their number, and their large steps

/** The deadline of the reads of a request, in milliseconds. */
const requestDeadlineMs = 5_000

/**
 * Runs the reads of an uncached HTTP request, an MCP call or an in-process read. If the reads do not complete before the
 * deadline, fails with `Unavailable` and interrupts the reads. The reads run in a detached fiber, because a failure must
 * not wait until interrupted reads have ended.
 *
 * @internal
 */
export const withRequestDeadline = <A, E>(reads: Effect.Effect<A, E>): Effect.Effect<A, E | Unavailable> =>
  Effect.acquireUseRelease(
    Effect.forkDetach(reads, { startImmediately: true }),
    (running) =>
      Effect.timeoutOrElse(Fiber.join(running), {
        duration: requestDeadlineMs,
        orElse: () => Effect.fail(Unavailable)
      }),
    (running) => Effect.sync(() => running.interruptUnsafe())
  )

/**
 * The maximum number of reads of a workspace that run at the same time. The result of a read can take 8 MiB of memory
 * until the result is encoded. A smaller number lets fewer lookups share a statement. With a maximum of 8 reads, a cold
 * read takes 1.3 times the CPU time.
 */
const readsPerWorkspace = 12

type WithPermit = <A, E>(workspace: WorkspaceId, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

/**
 * Returns a function that runs at most `count` effects of each workspace at the same time. Further effects wait. The
 * scope of the permits never closes, because a host can still use a handler after the handler's services have closed.
 *
 * @internal
 */
export const makeWorkspacePermits = (count: number): Effect.Effect<WithPermit> =>
  RcMap.make({ lookup: (_: WorkspaceId) => Semaphore.make(count) }).pipe(
    Scope.provide(Scope.makeUnsafe()),
    Effect.map(
      (permits): WithPermit =>
        (workspace, effect) =>
          Effect.scoped(Effect.flatMap(RcMap.get(permits, workspace), (own) => own.withPermit(effect)))
    )
  )

/** A step with this many UTF-16 code units or more is large. A smaller step usually takes less than 0.1 ms. */
const minLargeUnits = 32 * 1024

/**
 * The number of event-loop turns before a large step. Node accepts one connection in each turn, so Node accepts this
 * many connections between two large steps. An idle turn takes only microseconds.
 */
const turnsBeforeLargeStep = 32

const waitForTurns = Effect.replicateEffect(Effect.yieldNow, turnsBeforeLargeStep, { discard: true })

/**
 * Estimates a value's size in UTF-16 code units: the sum of the lengths of its texts, plus 8 for each other scalar.
 *
 * @internal
 */
export const countUnits = (value: unknown): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 8
  let units = 0
  for (const name in value) units += countUnits((value as Record<string, unknown>)[name])
  return units
}

/**
 * Limits how many reads of each workspace run at the same time, and how long large steps occupy the event loop.
 * Resolving and encoding a large value takes many times its size in memory, so only one large step runs at a time.
 * Other callers' requests proceed in the event-loop turns between large steps.
 */
export class ReadGate extends Context.Service<
  ReadGate,
  {
    /** Runs a read, from its statement to the encoded response, as soon as the workspace has a free permit. */
    readonly withPermit: WithPermit
    /**
     * Runs a step of a read. Large steps run one at a time, at least `turnsBeforeLargeStep` turns apart. `size` is an
     * estimate in UTF-16 code units or bytes.
     */
    readonly runStep: <A>(size: number, step: () => A) => Effect.Effect<A>
  }
>()("prompt-retrieval/application/ReadGate") {
  static readonly layer: Layer.Layer<ReadGate> = Layer.effect(
    ReadGate,
    Effect.gen(function* () {
      const largeStepPermit = yield* Semaphore.make(1)
      return ReadGate.of({
        withPermit: yield* makeWorkspacePermits(readsPerWorkspace),
        runStep: (size, step) =>
          size < minLargeUnits
            ? Effect.sync(step)
            : largeStepPermit.withPermit(Effect.andThen(waitForTurns, Effect.sync(step)))
      })
    })
  )
}
