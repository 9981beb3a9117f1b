import * as Effect from "effect/Effect"
import { LRUCache } from "lru-cache"
import type { Caller } from "../../../application/Admission.ts"
import { type CacheEntry, RevisionedCache, SingleFlight } from "../../../application/Freshness.ts"
import { LargeReadDeferred, LargeReadPolicy } from "../../../application/LargeReadPolicy.ts"
import { NamedPrompts } from "../../../application/NamedPrompts.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { Prompts } from "../../../application/Prompts.ts"
import { PromptNotFound, type PromptSummary } from "../../../domain/Prompt.ts"
import type { PromptNames } from "../../../domain/PromptNames.ts"
import { makeUnknownPrompt, tooManySlots, toRpcError } from "./Errors.ts"
import type { RpcError } from "./JsonRpc.ts"
import {
  findOpenSlots,
  type ListedPage,
  makeCursor,
  type PromptCatalog,
  type PromptContent,
  readPageAt
} from "./PromptCatalog.ts"

/** The number of prompts on a page of `prompts/list`. */
const pageSize = 50
/** The number of prompts of a page that are resolved at the same time. */
const maxResolving = 16
/** How long reading an uncached list or prompt may take. */
const readTimeout = "5 seconds"

const maxAgeMs = 30_000
const entryBytes = 256
/** Maximum sizes of all entries of each cache together, in bytes. */
const maxCacheBytes = { names: 32 * 1024 * 1024, slots: 8 * 1024 * 1024, contents: 32 * 1024 * 1024 }
/** A text of more code units is not cached. */
const maxCachedUnits = 512 * 1024
/** The approximate memory of one name, in bytes. */
const nameBytes = 256

type Slots = ReadonlyArray<string>

const noSlots: Slots = []

/** The resolved content of a prompt has more slots than a catalog takes. */
const TooManySlots = { _tag: "TooManySlots" } as const

const countBytes = (texts: ReadonlyArray<string>): number =>
  texts.reduce((sum, text) => sum + 2 * text.length + 64, entryBytes)

const makeCache = <Value extends object>(
  feed: ChangeFeed["Service"],
  maxSize: number,
  sizeOf: (value: Value) => number
) =>
  new RevisionedCache(
    feed,
    new LRUCache<string, CacheEntry<Value>>({
      maxSize,
      sizeCalculation: ({ value }, key) => sizeOf(value) + countBytes([key]),
      ttl: maxAgeMs
    })
  )

const withTimeout = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | Unavailable> =>
  Effect.timeoutOrElse(read, { duration: readTimeout, orElse: () => Effect.fail(Unavailable) })

/**
 * Makes the function that returns the catalog of a caller. Names, slots and contents are cached until something in
 * the workspace changes, so that a list reads only its page, and a prompt that is read again costs no query.
 */
export const makeWorkspaceCatalogs = Effect.gen(function* () {
  const prompts = yield* Prompts
  const namedPrompts = yield* NamedPrompts
  const feed = yield* ChangeFeed
  const namesCache = makeCache<PromptNames>(feed, maxCacheBytes.names, ({ size }) => size * nameBytes)
  const slotsCache = makeCache<Slots>(feed, maxCacheBytes.slots, countBytes)
  const contentCache = makeCache<PromptContent>(feed, maxCacheBytes.contents, ({ content, slots }) =>
    countBytes([content, ...slots])
  )
  const nameReads = new SingleFlight<PromptNames, Unavailable>(feed)

  /** Returns the names of the prompts of the caller's workspace. */
  const getNames = (caller: Caller): Effect.Effect<PromptNames, Unavailable> => {
    const workspace = caller.workspaceId
    const cached = namesCache.get(workspace)
    if (cached !== undefined) return Effect.succeed(cached)
    return nameReads.run(
      workspace,
      workspace,
      namesCache.load(workspace, namedPrompts.readNames(caller), (value) => ({ workspace, value }))
    )
  }

  const loadContent = (caller: Caller, id: string) =>
    Effect.flatMap(prompts.getResolved(caller, id), ({ prompt_type, resolved_content: content }) => {
      const slots = findOpenSlots(content)
      return slots === undefined
        ? Effect.fail(TooManySlots)
        : Effect.succeed<PromptContent>({ prompt_type, content, slots })
    })

  /** Returns the slots of a prompt: none if it is too large, and `undefined` if it was deleted meanwhile. */
  const readSlots = (caller: Caller, id: string): Effect.Effect<Slots | undefined, Unavailable> => {
    const workspace = caller.workspaceId
    const key = `${workspace} ${id}`
    const cached = slotsCache.get(key)
    if (cached !== undefined) return Effect.succeed(cached)
    const read = loadContent(caller, id).pipe(
      Effect.map(({ slots }) => slots),
      Effect.catchTags({
        ResolvedTooLarge: () => Effect.succeed(noSlots),
        TooManySlots: () => Effect.succeed(noSlots)
      }),
      // A page of large prompts would delay the requests of all workspaces.
      Effect.provideService(LargeReadPolicy, "defer"),
      Effect.catchDefect((defect) =>
        defect instanceof LargeReadDeferred ? Effect.succeed(noSlots) : Effect.die(defect)
      )
    )
    return Effect.catchTag(
      slotsCache.load(key, read, (value) => ({ workspace, value })),
      "PromptNotFound",
      () => Effect.undefined
    )
  }

  const readPage = (caller: Caller, page: number): Effect.Effect<ListedPage, Unavailable> =>
    Effect.gen(function* () {
      const names = yield* getNames(caller)
      const { items, total } = yield* prompts.list(caller, {}, { page, per_page: pageSize })
      const listed = yield* Effect.forEach(
        items,
        (summary: PromptSummary) =>
          Effect.map(readSlots(caller, summary.id), (slots) => ({ summary, slots })),
        { concurrency: maxResolving }
      )
      return {
        prompts: listed.flatMap(({ summary, slots }) =>
          slots === undefined
            ? []
            : [
                {
                  name: names.getName(summary),
                  title: summary.title,
                  description: summary.description,
                  slots
                }
              ]
        ),
        nextCursor: page * pageSize < total ? makeCursor(page + 1) : undefined
      }
    })

  const readContent = (caller: Caller, name: string): Effect.Effect<PromptContent, RpcError> => {
    const workspace = caller.workspaceId
    // The name is looked up inside the load, so that a text is not cached under a name that has changed.
    const read = Effect.flatMap(getNames(caller), (names) => {
      const id = names.findId(name)
      return id === undefined ? Effect.fail(PromptNotFound) : loadContent(caller, id)
    })
    return contentCache
      .load(`${workspace} ${name}`, read, (value) =>
        value.content.length <= maxCachedUnits ? { workspace, value } : undefined
      )
      .pipe(
        Effect.mapError((error) => {
          if (error._tag === "PromptNotFound") return makeUnknownPrompt(name)
          return error._tag === "TooManySlots" ? tooManySlots : toRpcError(error)
        })
      )
  }

  return (caller: Caller): PromptCatalog => ({
    list: (cursor) =>
      readPageAt(cursor, (page) => Effect.mapError(withTimeout(readPage(caller, page)), toRpcError)),
    get: (name) => {
      const cached = contentCache.get(`${caller.workspaceId} ${name}`)
      return cached === undefined
        ? Effect.mapError(withTimeout(readContent(caller, name)), (error) =>
            "_tag" in error ? toRpcError(error) : error
          )
        : Effect.succeed(cached)
    }
  })
})
