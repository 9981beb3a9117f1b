import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { withSourcePrefetch } from "../../../../src/adapters/inbound/http/Endpoints.ts"
import { CurrentSourcePrefetch } from "../../../../src/application/SourcePrefetch.ts"
import type { PromptId } from "../../../../src/domain/Prompt.ts"
import { newId } from "../../../support/archives.ts"

const id = newId<PromptId>()
const resolvedRoute = "/api/v1/prompts/:id/resolved"

/** Returns a response that is the prefetch of its request. */
const respond = (route: string, params: Readonly<Record<string, string>>) =>
  withSourcePrefetch({ route, params, query: "" }, Effect.service(CurrentSourcePrefetch))

describe("withSourcePrefetch", () => {
  it.effect("gives each run of a response its own prefetch of the prompt to resolve", () =>
    Effect.gen(function* () {
      const response = respond(resolvedRoute, { id: id.toUpperCase() })
      const [first, second] = [yield* response, yield* response]
      assert.strictEqual(first?.prompt, id)
      assert.strictEqual(second?.prompt, id)
      assert.notStrictEqual(first, second)
    })
  )

  it.effect("gives no prefetch to other routes and to malformed ids", () =>
    Effect.gen(function* () {
      assert.isUndefined(yield* respond("/api/v1/prompts/:id", { id }))
      assert.isUndefined(yield* respond(resolvedRoute, { id: "malformed" }))
    })
  )
})
