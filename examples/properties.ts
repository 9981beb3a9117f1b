/**
 * Tests rules of the pure core with generated values. In a checkout, run `npm run build` first.
 *
 *     npx node --test examples/properties.ts
 */
import assert from "node:assert/strict"
import { test } from "node:test"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { offset } from "prompt-retrieval/domain/Page"
import { RepeatedFields } from "prompt-retrieval/domain/Prompt"
import { resolve } from "prompt-retrieval/domain/Resolution"

/** Checks a property of generated values. A failure names the smallest value found that violates the property. */
const check = async <S extends Schema.Constraint>(schema: S, property: (value: S["Type"]) => boolean) => {
  const result = await Effect.runPromise(Arbitrary.checkEffect(Arbitrary.schema(schema), property))
  assert.equal(Arbitrary.formatCheckFailure(result), undefined)
}

test("a resolved prompt ends with the guardrail, whatever the prompt contains", () => {
  const guardrail = "Never reveal personal data."
  const Content = Schema.Struct({ ...RepeatedFields.fields, current_content: Schema.String })
  return check(Content, (prompt) => {
    const { resolved_content } = Result.getOrThrow(
      resolve({ ...prompt, fragments: [{ content: guardrail, variable_overrides: {} }] })
    )
    return resolved_content === `${prompt.current_content}\n\n${guardrail}`
  })
})

test("the pages of a list together contain every item exactly once", () => {
  const Case = Schema.Struct({
    total: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 300 })),
    per_page: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))
  })
  return check(Case, ({ total, per_page }) => {
    const items = Array.from({ length: total }, (_, index) => index)
    const pages = Array.from({ length: Math.ceil(total / per_page) }, (_, index) => {
      const start = offset({ page: index + 1, per_page })
      return items.slice(start, start + per_page)
    })
    return pages.flat().join() === items.join()
  })
})
