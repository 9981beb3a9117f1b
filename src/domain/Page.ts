import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** One page of a list: `page` counts from 1, `per_page` is 1 to 100 (SPEC.md section 4.1). */
export interface Page {
  readonly page: number
  readonly per_page: number
}

/** What a list answers beside its items; `total` does not depend on the page (SPEC.md section 2.1). */
export const PageMeta = Schema.Struct({
  page: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({ description: "Counted from 1." }),
  per_page: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 })).annotate({
    description: "The most items that a page holds."
  }),
  total: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
    description: "How many items there are on all pages."
  })
}).annotate({ identifier: "PageMeta", description: "Which page this is, and of how much." })
export type PageMeta = typeof PageMeta.Type

/** The items of one page, and how many there are on all pages. */
export interface PageOfItems<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
}

export const defaultPerPage = 20
export const maxPerPage = 100

/** A parameter that breaks its rule. The message says the rule, never the value (DESIGN.md section 5). */
export interface InvalidParameter {
  readonly _tag: "InvalidParameter"
  readonly message: string
}
export const InvalidParameter = (message: string): InvalidParameter => ({ _tag: "InvalidParameter", message })

const isPositiveInt = (value: number): boolean => Number.isSafeInteger(value) && value >= 1

/** The rule of both paging parameters, in words. */
export const positiveIntRule = "must be an integer from 1 to 9007199254740991"

/**
 * A page from what was asked for: absent is page 1 of 20, more than 100 a page becomes 100, anything but a whole
 * number from 1 to 2^53-1 fails.
 */
export const makePage = (asked: {
  readonly page?: number | undefined
  readonly per_page?: number | undefined
}): Result.Result<Page, InvalidParameter> => {
  const { page = 1, per_page = defaultPerPage } = asked
  if (!isPositiveInt(page)) return Result.fail(InvalidParameter(`page ${positiveIntRule}`))
  if (!isPositiveInt(per_page)) return Result.fail(InvalidParameter(`per_page ${positiveIntRule}`))
  return Result.succeed({ page, per_page: Math.min(per_page, maxPerPage) })
}

const countPattern = /^[1-9][0-9]{0,15}$/

/** Reads a paging parameter as written in a query: `^[1-9][0-9]*$` up to 2^53-1, else `undefined`. */
export const parsePositiveInt = (text: string): number | undefined => {
  if (!countPattern.test(text)) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : undefined
}

/** How many items come before the page. May exceed 2^53: compare it, or clamp it with `reaches`. */
export const offset = (page: Page): number => (page.page - 1) * page.per_page

/** Whether a page of a list can hold anything at all: no list here has 2^31 items. */
export const isWithinOffsetLimit = (page: Page): boolean => offset(page) <= 2147483647

export const pageMeta = (page: Page, total: number): PageMeta => ({
  page: page.page,
  per_page: page.per_page,
  total
})
