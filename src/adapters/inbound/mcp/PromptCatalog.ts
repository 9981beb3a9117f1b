import * as Effect from "effect/Effect"
import type { PromptType } from "../../../domain/Prompt.ts"
import { findSlots } from "../../../domain/Resolution.ts"
import { makeInvalidParams, type RpcError } from "./JsonRpc.ts"

/** A prompt as `prompts/list` lists it. `slots` are the slots that its resolved content leaves. */
export interface ListedPrompt {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly slots: ReadonlyArray<string>
}

/** One page of the prompts. `nextCursor` is undefined on the last page. */
export interface ListedPage {
  readonly prompts: ReadonlyArray<ListedPrompt>
  readonly nextCursor: string | undefined
}

/** The resolved content of a prompt, with the slots that it leaves in the order in which they first appear. */
export interface PromptContent {
  readonly prompt_type: PromptType
  readonly content: string
  readonly slots: ReadonlyArray<string>
}

/** A prompt with more slots cannot be read. */
export const maxSlots = 1_000

/** Returns the slots that a text leaves, or `undefined` for more than `maxSlots`. */
export const findOpenSlots = (content: string): ReadonlyArray<string> | undefined => {
  const slots = findSlots(content, maxSlots)
  return slots.size > maxSlots ? undefined : [...slots]
}

/** The prompts of one workspace by their names. */
export interface PromptCatalog {
  /** Returns one page in the order of the HTTP API. Fails with invalid params for a cursor that no page had. */
  readonly list: (cursor: string | undefined) => Effect.Effect<ListedPage, RpcError>
  /** Returns the prompt with this name. Fails with invalid params if there is none. */
  readonly get: (name: string) => Effect.Effect<PromptContent, RpcError>
}

const cursorPrefix = "page:"
/** No list has more pages. */
export const maxCursorPage = 1_000_000

/** Makes the cursor of a page, which counts from 1. */
export const makeCursor = (page: number): string =>
  Buffer.from(`${cursorPrefix}${page}`).toString("base64url")

/** Returns the page that a cursor denotes, or `undefined` for a text that is not a cursor. */
export const parseCursor = (cursor: string): number | undefined => {
  const text = Buffer.from(cursor, "base64url").toString()
  const page = text.startsWith(cursorPrefix) ? Number(text.slice(cursorPrefix.length)) : Number.NaN
  return page > 1 && page <= maxCursorPage && makeCursor(page) === cursor && Number.isInteger(page)
    ? page
    : undefined
}

/**
 * Reads the page that a cursor denotes, without a cursor the first page. Fails with invalid params for a text that
 * is not a cursor.
 */
export const readPageAt = (
  cursor: string | undefined,
  readPage: (page: number) => Effect.Effect<ListedPage, RpcError>
): Effect.Effect<ListedPage, RpcError> => {
  const page = cursor === undefined ? 1 : parseCursor(cursor)
  return page === undefined
    ? Effect.fail(makeInvalidParams("cursor must be the nextCursor of an earlier page"))
    : readPage(page)
}
