import * as Effect from "effect/Effect"
import { LRUCache } from "lru-cache"
import type { Caller } from "../../../application/access/Admission.ts"
import { RevisionedCache } from "../../../application/cache/RevisionedCache.ts"
import { SingleFlight } from "../../../application/cache/SingleFlight.ts"
import { makeNameReader } from "../../../application/reading/NameReader.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { maxTitlesPerRead, PromptTitles } from "../../../application/ports/PromptTitles.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { Prompts } from "../../../application/reading/Prompts.ts"
import { ReadScheduler } from "../../../application/reading/ReadScheduler.ts"
import type { PromptId, PromptSummary, PromptType } from "../../../domain/Prompt.ts"
import type { PromptNames } from "../../../domain/PromptNames.ts"
import { findSlots } from "../../../domain/Resolution.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { makeUnknownPrompt, maxSlots, tooManySlots, toRpcError } from "./RpcErrors.ts"
import { makeInvalidParams, type RpcError } from "./JsonRpc.ts"

type Slots = ReadonlyArray<string>

/** An item of `prompts/list`. `slots` are the unfilled slots of the resolved content. */
export interface ListedPrompt {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly slots: Slots
}

/** One page of the prompts. `nextCursor` is undefined on the last page. */
export interface ListedPage {
  readonly prompts: ReadonlyArray<ListedPrompt>
  readonly nextCursor: string | undefined
}

/** The resolved content of a prompt, and its unfilled slots in the order in which they first appear. */
export interface PromptContent {
  readonly prompt_type: PromptType
  readonly content: string
  readonly slots: Slots
}

/** The prompts of one workspace by their names. */
export interface PromptCatalog {
  /**
   * Returns one page, in the order of the HTTP API. Returns the first page if there is no cursor. Fails with
   * `invalidParams` (-32602) if the cursor is not the `nextCursor` of a page.
   */
  readonly list: (cursor: string | undefined) => Effect.Effect<ListedPage, RpcError>
  /** Returns the prompt with this name. Fails with `invalidParams` (-32602) if no prompt has this name. */
  readonly get: (name: string) => Effect.Effect<PromptContent, RpcError>
}

/** The number of prompts on a page of `prompts/list`. */
const pageSize = 50
/** Maximum number of prompts of a page that are resolved at the same time. */
const maxResolving = 2
const maxAgeMs = 30_000
/** Maximum size of each cache of names, in bytes. */
const maxNamesBytes = 32 * 1024 * 1024
/** Maximum size of the cache of slots, and of the cache of contents, in bytes. */
const maxTextBytes = 8 * 1024 * 1024
/** The approximate memory of a cache entry in addition to its texts, in bytes. */
const entryBytes = 256
/** The approximate memory of one name, in bytes. */
const nameBytes = 256
/**
 * How long the names of a workspace with more than `maxTitlesPerRead` prompts are used even after a change, in
 * milliseconds per prompt.
 */
const msPerLargeName = 0.1
export const maxCursorPage = 1_000_000
const cursorPrefix = "page:"

export const makeCursor = (page: number): string =>
  Buffer.from(`${cursorPrefix}${page}`).toString("base64url")

export const parseCursor = (cursor: string): number | undefined => {
  const page = Number(Buffer.from(cursor, "base64url").toString().slice(cursorPrefix.length))
  return Number.isInteger(page) && page > 1 && page <= maxCursorPage && makeCursor(page) === cursor
    ? page
    : undefined
}

/**
 * Copies a text. V8 can store a substring as a reference to the whole text. Such a substring keeps the whole text in
 * memory until it is copied.
 */
const copyText = (text: string): string => Buffer.from(text, "utf16le").toString("utf16le")

const countBytes = (texts: ReadonlyArray<string>): number =>
  texts.reduce((sum, text) => sum + 2 * text.length + 64, entryBytes)

/**
 * Makes the function that returns the catalog of a caller. Names, slots and contents are cached until something in the
 * workspace changes, for at most `maxAgeMs`. With cached names, a list reads only the prompts of one page, and a prompt
 * with cached content needs no query. The names of a workspace with more than `maxTitlesPerRead` prompts are also used
 * after a change, for a time that grows with the number of prompts.
 */
export const makePromptCatalogs = Effect.gen(function* () {
  const prompts = yield* Prompts
  const { takeTurnFor } = yield* ReadScheduler
  const readNames = makeNameReader(yield* PromptTitles)
  const feed = yield* ChangeFeed
  const namesCache = new RevisionedCache<PromptNames>(feed, { maxSize: maxNamesBytes, maxAgeMs })
  const slotsCache = new RevisionedCache<Slots>(feed, { maxSize: maxTextBytes, maxAgeMs })
  const contentCache = new RevisionedCache<PromptContent>(feed, { maxSize: maxTextBytes, maxAgeMs })
  const largeNames = new LRUCache<string, PromptNames>({
    maxSize: maxNamesBytes,
    sizeCalculation: ({ size }) => size * nameBytes
  })
  const nameReads = new SingleFlight<PromptNames, Unavailable>(feed)

  const findNames = (workspace: WorkspaceId): PromptNames | undefined =>
    namesCache.get(workspace) ?? largeNames.get(workspace)
  const findContent = (workspace: WorkspaceId, id: PromptId | undefined): PromptContent | undefined =>
    id === undefined ? undefined : contentCache.get(`${workspace} ${id}`)

  const getNames = (caller: Caller): Effect.Effect<PromptNames, Unavailable> => {
    const workspace = caller.workspaceId
    const cached = findNames(workspace)
    if (cached !== undefined) return Effect.succeed(cached)
    const read = Effect.tap(readNames(workspace), (names) =>
      Effect.sync(() => {
        if (names.size > maxTitlesPerRead)
          largeNames.set(workspace, names, { ttl: Math.ceil(names.size * msPerLargeName) })
      })
    )
    return nameReads.run(
      workspace,
      workspace,
      namesCache.load(workspace, read, (value) => ({
        workspace,
        value,
        size: entryBytes + value.size * nameBytes
      }))
    )
  }

  const resolve = (caller: Caller, id: PromptId) =>
    Effect.map(
      takeTurnFor(caller.workspaceId, prompts.getResolved(caller, id)),
      ({ prompt_type, resolved_content: content }): PromptContent => ({
        prompt_type,
        content,
        slots: Array.from(findSlots(content, maxSlots), copyText)
      })
    )

  const getContent = (caller: Caller, id: PromptId) => {
    const workspace = caller.workspaceId
    const read = contentCache.load(`${workspace} ${id}`, resolve(caller, id), (value) => ({
      workspace,
      value,
      size: countBytes([value.content, ...value.slots])
    }))
    const cached = findContent(workspace, id)
    return cached === undefined ? read : Effect.succeed(cached)
  }

  /**
   * Returns the slots of a prompt. Returns an empty array if the prompt cannot be read because it is too large or has
   * too many slots. Returns `undefined` if the prompt was deleted after it was listed.
   */
  const getSlots = (caller: Caller, id: PromptId): Effect.Effect<Slots | undefined, Unavailable> => {
    const workspace = caller.workspaceId
    const key = `${workspace} ${id}`
    const cached = slotsCache.get(key)
    if (cached !== undefined) return Effect.succeed(cached)
    const read = resolve(caller, id).pipe(
      Effect.map(({ slots }) => (slots.length > maxSlots ? [] : slots)),
      Effect.catchTag("ResolvedTooLarge", () => Effect.succeed<Slots>([]))
    )
    const load = slotsCache.load(key, read, (value) => ({ workspace, value, size: countBytes(value) }))
    return Effect.catchTag(load, "PromptNotFound", () => Effect.undefined)
  }

  const listPrompt = (caller: Caller, names: PromptNames, summary: PromptSummary) =>
    Effect.map(getSlots(caller, summary.id), (slots): ReadonlyArray<ListedPrompt> => {
      const { title, description } = summary
      return slots === undefined ? [] : [{ name: names.getName(summary), title, description, slots }]
    })

  const readPage = Effect.fnUntraced(function* (caller: Caller, page: number) {
    const names = yield* getNames(caller)
    const { items, total } = yield* prompts.list(caller, {}, { page, per_page: pageSize })
    const listed = yield* Effect.forEach(items, (summary) => listPrompt(caller, names, summary), {
      concurrency: maxResolving
    })
    return {
      prompts: listed.flat(),
      nextCursor: page * pageSize < total ? makeCursor(page + 1) : undefined
    }
  })

  const readContent = (caller: Caller, name: string) =>
    Effect.flatMap(getNames(caller), (names): Effect.Effect<PromptContent, RpcError | Unavailable> => {
      const id = names.findId(name)
      if (id === undefined) return Effect.fail(makeUnknownPrompt(name))
      return getContent(caller, id).pipe(
        Effect.catchTags({
          ResolvedTooLarge: (error) => Effect.fail(toRpcError(error)),
          PromptNotFound: () => Effect.fail(makeUnknownPrompt(name))
        }),
        Effect.flatMap((found) =>
          found.slots.length > maxSlots ? Effect.fail(tooManySlots) : Effect.succeed(found)
        )
      )
    })

  const mapUnavailable = <A>(read: Effect.Effect<A, RpcError | Unavailable>): Effect.Effect<A, RpcError> =>
    Effect.mapError(read, (error) => ("_tag" in error ? toRpcError(error) : error))

  return (caller: Caller): PromptCatalog => ({
    list: (cursor) => {
      const page = cursor === undefined ? 1 : parseCursor(cursor)
      return page === undefined
        ? Effect.fail(makeInvalidParams("cursor must be the nextCursor of an earlier page"))
        : mapUnavailable(readPage(caller, page))
    },
    get: (name) => {
      const workspace = caller.workspaceId
      const cached = findContent(workspace, findNames(workspace)?.findId(name))
      const content =
        cached !== undefined && cached.slots.length <= maxSlots
          ? Effect.succeed(cached)
          : mapUnavailable(readContent(caller, name))
      return takeTurnFor(workspace, content)
    }
  })
})
