import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { historyCutoff } from "../../domain/HistoryCutoff.ts"
import type { Page, PageOfItems } from "../../domain/Page.ts"
import { type Prompt, PromptNotFound, type PromptSummary, type ResolvedPrompt } from "../../domain/Prompt.ts"
import { type PromptReference, parsePromptReference } from "../../domain/PromptName.ts"
import { type ResolutionSource, type ResolvedTooLarge, resolveInSteps } from "../../domain/Resolution.ts"
import {
  parseVersionNumber,
  type Version,
  VersionNotFound,
  type VersionSummary
} from "../../domain/Version.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { Caller } from "../access/Admission.ts"
import { type PromptFilter, PromptRepo } from "../ports/PromptRepo.ts"
import { withSpanIfTraced } from "../observability/Instrumentation.ts"
import type { Unavailable } from "../ports/Unavailable.ts"
import { ReadScheduler } from "./ReadScheduler.ts"

/** If a step takes longer than this, in milliseconds, the next step is treated as large, even if its text is small. */
const longStepMs = 1

/**
 * Makes the function that resolves a prompt step by step, so that other requests can proceed before each large step.
 */
const makeResolve = ({ takeTurn }: ReadScheduler["Service"]) =>
  Effect.fnUntraced(function* (workspace: WorkspaceId, source: ResolutionSource) {
    const steps = resolveInSteps(source)
    let units = source.current_content.length
    for (;;) {
      yield* takeTurn(workspace, units)
      const startedAt = performance.now()
      const step = steps.next()
      if (step.done === true) return yield* Effect.fromResult(step.value)
      units = performance.now() - startedAt > longStepMs ? Number.POSITIVE_INFINITY : step.value
    }
  })

/** A resolved prompt, and the number of the version that was resolved. */
export interface ResolvedVersion {
  readonly prompt: ResolvedPrompt
  readonly current_version: number
}

/**
 * The five reads of specification 4, for HTTP, MCP and embedders. `prompt` is the raw text of an id or a name
 * (`parsePromptReference`), and `number` the raw text of a version number: malformed text fails like an unknown prompt
 * or version, and the database is not queried.
 */
export class Prompts extends Context.Service<
  Prompts,
  {
    readonly list: (
      caller: Caller,
      filter: PromptFilter,
      page: Page
    ) => Effect.Effect<PageOfItems<PromptSummary>, Unavailable>
    readonly get: (caller: Caller, prompt: string) => Effect.Effect<Prompt, PromptNotFound | Unavailable>
    readonly getResolved: (
      caller: Caller,
      prompt: string
    ) => Effect.Effect<ResolvedPrompt, PromptNotFound | ResolvedTooLarge | Unavailable>
    /** Like `getResolved`, but also returns the version number that the prompt had when it was read. */
    readonly getResolvedVersion: (
      caller: Caller,
      prompt: string
    ) => Effect.Effect<ResolvedVersion, PromptNotFound | ResolvedTooLarge | Unavailable>
    readonly listVersions: (
      caller: Caller,
      prompt: string,
      page: Page
    ) => Effect.Effect<PageOfItems<VersionSummary>, PromptNotFound | Unavailable>
    readonly getVersion: (
      caller: Caller,
      prompt: string,
      number: string
    ) => Effect.Effect<Version, VersionNotFound | Unavailable>
  }
>()("prompt-retrieval/Prompts") {
  /** Provides the use cases, and the scheduler for the adapters that call them. */
  static readonly layer: Layer.Layer<Prompts | ReadScheduler, never, PromptRepo> = Layer.effect(
    Prompts,
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const resolve = makeResolve(yield* ReadScheduler)

      const parsePrompt = (text: string): Effect.Effect<PromptReference, PromptNotFound> => {
        const parsed = parsePromptReference(text)
        return parsed === undefined ? Effect.fail(PromptNotFound) : Effect.succeed(parsed)
      }

      const getResolvedVersion = withSpanIfTraced("Prompts.getResolved")((caller: Caller, text: string) =>
        parsePrompt(text).pipe(
          Effect.flatMap((prompt) => repo.getSource(caller.workspaceId, prompt)),
          Effect.flatMap((source) =>
            Effect.map(resolve(caller.workspaceId, source), (prompt) => ({
              prompt,
              current_version: source.current_version
            }))
          )
        )
      )

      return Prompts.of({
        list: withSpanIfTraced("Prompts.list")((caller, filter, page) =>
          repo.list(caller.workspaceId, filter, page)
        ),
        get: withSpanIfTraced("Prompts.get")((caller, text) =>
          Effect.flatMap(parsePrompt(text), (prompt) => repo.get(caller.workspaceId, prompt))
        ),
        getResolved: (caller, text) => Effect.map(getResolvedVersion(caller, text), ({ prompt }) => prompt),
        getResolvedVersion,
        listVersions: withSpanIfTraced("Prompts.listVersions")(
          Effect.fnUntraced(function* (caller, text, page) {
            const prompt = yield* parsePrompt(text)
            const now = yield* Clock.currentTimeMillis
            return yield* repo.listVersions(caller.workspaceId, prompt, historyCutoff(caller.tier, now), page)
          })
        ),
        getVersion: withSpanIfTraced("Prompts.getVersion")(
          Effect.fnUntraced(function* (caller, text, number) {
            const prompt = parsePromptReference(text)
            const version = parseVersionNumber(number)
            if (prompt === undefined || version === undefined) return yield* Effect.fail(VersionNotFound)
            const now = yield* Clock.currentTimeMillis
            const oldest = historyCutoff(caller.tier, now)
            return yield* repo.getVersion(caller.workspaceId, prompt, version, oldest)
          })
        )
      })
    })
  ).pipe(Layer.provideMerge(ReadScheduler.layer))
}
