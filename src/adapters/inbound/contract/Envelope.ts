import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  type InvalidParameter,
  makePage,
  type Page,
  PageMeta,
  type PageOfItems
} from "../../../domain/Page.ts"
import { Prompt, ResolvedPrompt } from "../../../domain/Prompt.ts"

/** The schema of a response with one resource (specification 2.1). */
export const DataEnvelope = <A extends Schema.Top>(resource: A) => Schema.Struct({ data: resource })

/** The schema of a response with one page of a list (specification 2.1). */
export const PageEnvelope = <A extends Schema.Top>(item: A) =>
  Schema.Struct({ data: Schema.Array(item), meta: PageMeta })

/** The schema of a response with several resolved prompts and, on request, their names and versions. */
export const ResolvedEnvelope = Schema.Struct({
  data: Schema.Array(ResolvedPrompt),
  meta: Schema.Struct({
    ...PageMeta.fields,
    prompts: Schema.optionalKey(
      Schema.Array(
        Schema.Struct({
          name: Schema.String.annotate({
            description:
              "The `prompt` parameter that selected the prompt. Without `prompt` parameters, the name of the prompt."
          }),
          version: Prompt.fields.current_version
        })
      ).annotate({
        description:
          "With `names=true`, the name and the version of each prompt in `data`, in the same order."
      })
    )
  })
})

/** Reads a page and wraps the page in an envelope. Fails before the read if a paging parameter is invalid. */
export const readPageEnvelope = <A, E>(
  parameters: Parameters<typeof makePage>[0],
  read: (page: Page) => Effect.Effect<PageOfItems<A>, E>
): Effect.Effect<{ readonly data: ReadonlyArray<A>; readonly meta: PageMeta }, E | InvalidParameter> =>
  Effect.flatMap(Effect.fromResult(makePage(parameters)), (page) =>
    Effect.map(read(page), ({ items, total }) => ({ data: items, meta: { ...page, total } }))
  )
