/**
 * Reads a prompt of the demo workspace in an Effect program, and serves the HTTP API from the same layers. In a checkout,
 * run `npm run build` first.
 *
 * npx node examples/effect-program.ts
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { changeFeedLayer, databaseLayer, makeWebHandler, serviceLayer } from "prompt-retrieval"
import { defaultRateLimits } from "prompt-retrieval/application/Admission"
import { Lifecycle } from "prompt-retrieval/application/Lifecycle"
import { Prompts } from "prompt-retrieval/application/Prompts"
import { WorkspaceId } from "prompt-retrieval/domain/WorkspaceId"

const url = Redacted.make(process.env.DATABASE_URL ?? "")

const services = serviceLayer({ redisUrl: undefined, rateLimits: defaultRateLimits }).pipe(
  Layer.provideMerge(changeFeedLayer),
  Layer.provideMerge(databaseLayer({ url })),
  Layer.provideMerge(Lifecycle.serving)
)

const program = Effect.gen(function* () {
  const prompts = yield* Prompts
  const caller = { workspaceId: WorkspaceId.make("40de844f-2448-5881-8be9-4918059ee50c"), tier: "team" }
  const { title, fragment_count } = yield* prompts.getResolved(caller, "support-agent")
  console.log(title, fragment_count)

  const handler = yield* makeWebHandler
  const response = yield* Effect.promise(() => handler(new Request("http://localhost/readyz")))
  console.log("/readyz", response.status)
})

await Effect.runPromise(Effect.provide(program, services))
