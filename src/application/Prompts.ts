import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { oldestVisible } from "../domain/History.ts"
import type { Page, Slice } from "../domain/Page.ts"
import {
  type Prompt,
  type PromptId,
  PromptNotFound,
  type PromptSummary,
  parsePromptId,
  type ResolvedPrompt
} from "../domain/Prompt.ts"
import { Resolution, type ResolvedTooLarge } from "../domain/Resolution.ts"
import { parseVersionNumber, type Version, VersionNotFound, type VersionSummary } from "../domain/Version.ts"
import type { Caller } from "./Admission.ts"
import { type PromptFilter, PromptRepo } from "./PromptRepo.ts"
import { spanned } from "./Spans.ts"
import type { Unavailable } from "./Unavailable.ts"

/** How many code units a resolution works through before other requests have their turn. */
const unitsPerTurn = 32 * 1024

const resolveInTurns = (resolution: Resolution): Effect.Effect<ResolvedPrompt, ResolvedTooLarge> => {
  const result = resolution.run(unitsPerTurn)
  return result === undefined
    ? Effect.flatMap(Effect.yieldNow, () => resolveInTurns(resolution))
    : Effect.fromResult(result)
}

/**
 * The five reads (SPEC.md section 4), for HTTP and for embedders. Ids and version numbers come as their callers
 * wrote them: what is malformed is not found, and costs no look-up.
 */
export class Prompts extends Context.Service<
  Prompts,
  {
    readonly list: (
      caller: Caller,
      filter: PromptFilter,
      page: Page
    ) => Effect.Effect<Slice<PromptSummary>, Unavailable>
    readonly get: (caller: Caller, id: string) => Effect.Effect<Prompt, PromptNotFound | Unavailable>
    readonly getResolved: (
      caller: Caller,
      id: string
    ) => Effect.Effect<ResolvedPrompt, PromptNotFound | ResolvedTooLarge | Unavailable>
    readonly listVersions: (
      caller: Caller,
      id: string,
      page: Page
    ) => Effect.Effect<Slice<VersionSummary>, PromptNotFound | Unavailable>
    readonly getVersion: (
      caller: Caller,
      id: string,
      number: string
    ) => Effect.Effect<Version, VersionNotFound | Unavailable>
  }
>()("prompt-retrieval/Prompts") {
  static readonly layer: Layer.Layer<Prompts, never, PromptRepo> = Layer.effect(
    Prompts,
    Effect.gen(function* () {
      const repo = yield* PromptRepo

      const promptId = (id: string): Effect.Effect<PromptId, PromptNotFound> => {
        const parsed = parsePromptId(id)
        return parsed === undefined ? Effect.fail(PromptNotFound) : Effect.succeed(parsed)
      }

      return Prompts.of({
        list: spanned("Prompts.list")((caller, filter, page) => repo.list(caller.workspaceId, filter, page)),
        get: spanned("Prompts.get")((caller, id) =>
          Effect.flatMap(promptId(id), (prompt) => repo.get(caller.workspaceId, prompt))
        ),
        getResolved: spanned("Prompts.getResolved")((caller, id) =>
          promptId(id).pipe(
            Effect.flatMap((prompt) => repo.getSource(caller.workspaceId, prompt)),
            Effect.flatMap((source) => resolveInTurns(new Resolution(source)))
          )
        ),
        listVersions: spanned("Prompts.listVersions")(
          Effect.fnUntraced(function* (caller, id, page) {
            const prompt = yield* promptId(id)
            const now = yield* Clock.currentTimeMillis
            return yield* repo.listVersions(caller.workspaceId, prompt, oldestVisible(caller.tier, now), page)
          })
        ),
        getVersion: spanned("Prompts.getVersion")(
          Effect.fnUntraced(function* (caller, id, number) {
            const prompt = parsePromptId(id)
            const version = parseVersionNumber(number)
            if (prompt === undefined || version === undefined) return yield* Effect.fail(VersionNotFound)
            const now = yield* Clock.currentTimeMillis
            const oldest = oldestVisible(caller.tier, now)
            return yield* repo.getVersion(caller.workspaceId, prompt, version, oldest)
          })
        )
      })
    })
  )
}
