import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

export const defaultPerPage = 20
export const maxPerPage = 100

/** A page of a list. `page` counts from 1; `per_page` is 1 to 100, or more for operators (specification 4.1). */
export interface Page {
  readonly page: number
  readonly per_page: number
}

/** The `meta` object of a list response. `total` does not depend on the page (specification 2.1). */
export const PageMeta = Schema.Struct({
  page: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
    description: "Page number, starting at 1."
  }),
  per_page: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxPerPage })).annotate({
    description: "Maximum number of items per page."
  }),
  total: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
    description: "Number of items on all pages."
  })
}).annotate({ identifier: "PageMeta", description: "Pagination details." })
export type PageMeta = typeof PageMeta.Type

/** The items of one page and the number of items on all pages. */
export interface PageOfItems<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
}

/** A parameter that breaks its rule. The message names the parameter and the rule, never the value. */
export interface InvalidParameter {
  readonly _tag: "InvalidParameter"
  readonly message: string
}
export const InvalidParameter = (message: string): InvalidParameter => ({ _tag: "InvalidParameter", message })

const isPositiveInt = (value: number): boolean => Number.isSafeInteger(value) && value >= 1

/** The rule of `page` and `per_page`, for error messages. */
export const positiveIntRule = "must be an integer from 1 to 9007199254740991"

/**
 * Returns the page for the given parameters (specification 4.1). The defaults are page 1 and 20 items per page. A
 * `per_page` over 100 becomes 100. Fails if a parameter is not an integer from 1 to 2^53-1.
 */
export const makePage = (parameters: {
  readonly page?: number | undefined
  readonly per_page?: number | undefined
}): Result.Result<Page, InvalidParameter> => {
  const { page = 1, per_page = defaultPerPage } = parameters
  if (!isPositiveInt(page)) return Result.fail(InvalidParameter(`page ${positiveIntRule}`))
  if (!isPositiveInt(per_page)) return Result.fail(InvalidParameter(`per_page ${positiveIntRule}`))
  return Result.succeed({ page, per_page: Math.min(per_page, maxPerPage) })
}

const positiveIntPattern = /^[1-9][0-9]{0,15}$/

/** Parses an integer from 1 to 2^53-1 in digits without a leading zero. Returns `undefined` for any other text. */
export const parsePositiveInt = (text: string): number | undefined => {
  if (!positiveIntPattern.test(text)) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : undefined
}

/** Returns the number of items before the page. A result over 2^53 is not exact. */
export const offset = ({ page, per_page }: Page): number => (page - 1) * per_page

/** Returns one page of the list `all`. A page past the end is empty. */
export const paginate = <A>(all: ReadonlyArray<A>, page: Page): PageOfItems<A> => ({
  items: all.slice(offset(page), offset(page) + page.per_page),
  total: all.length
})
