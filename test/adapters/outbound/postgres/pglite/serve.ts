import { once } from "node:events"
import * as Effect from "effect/Effect"
import * as EmbeddedPostgres from "../../../../../src/adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"

/**
 * Run by the tests: holds the database of a directory, as `open` or `connect` give it, until SIGTERM, or until the tests
 * have gone.
 */
const [dataDir = "", how] = process.argv.slice(2)
const signal = once(process, "SIGTERM")
const terminated = Effect.promise(() => signal)
process.stdin.resume().once("end", () => process.exit(1))
const say = (said: object) => Effect.sync(() => console.log(JSON.stringify(said)))

const reach = how === "connect" ? EmbeddedPostgres.connect : EmbeddedPostgres.open

await reach({ dataDir }).pipe(
  Effect.tap((database) => say({ socketPath: database.socketPath, served: "listen" in database })),
  Effect.andThen(terminated),
  Effect.scoped,
  Effect.catch((error) => say({ error: error._tag, message: error.message })),
  Effect.ensuring(Effect.sync(() => process.stdin.destroy())),
  Effect.runPromise
)
