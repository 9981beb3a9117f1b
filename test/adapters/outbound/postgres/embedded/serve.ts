import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as EmbeddedPostgres from "../../../../../src/adapters/outbound/postgres/embedded/EmbeddedPostgres.ts"

// Runs `open` or `connect` for the database of a directory. `connect` opens the database only if no other process has
// opened it. Reports the URL or the error to the parent process, and runs until SIGTERM.
const [method, dataDir] = process.argv.slice(2) as ["open" | "connect", string]

const program = Effect.gen(function* () {
  const { url } = yield* method === "open"
    ? EmbeddedPostgres.open({ dataDir })
    : EmbeddedPostgres.connect({ dataDir })
  process.send?.({ url: Redacted.value(url) })
  yield* Effect.callback<void>((resume) => {
    const keepAlive = setInterval(() => {}, 60_000)
    process.once("SIGTERM", () => {
      clearInterval(keepAlive)
      resume(Effect.void)
    })
  })
}).pipe(
  Effect.scoped,
  Effect.catch((error) => Effect.sync(() => process.send?.({ error: error.message })))
)

await Effect.runPromise(program)
process.exit(0)
