import { once } from "node:events"
import * as Effect from "effect/Effect"
import * as EmbeddedPostgres from "../../../../../src/adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"

/**
 * A process that tests start (`processes.ts`): opens the database of a directory, or connects to it, until SIGTERM
 * or until the test process ends.
 */
const [dataDir = "", method] = process.argv.slice(2)
const signal = once(process, "SIGTERM")
const terminated = Effect.promise(() => signal)
process.stdin.resume().once("end", () => process.exit(1))
const print = (report: object) => Effect.sync(() => console.log(JSON.stringify(report)))

const acquire = method === "connect" ? EmbeddedPostgres.connect : EmbeddedPostgres.open

await acquire({ dataDir }).pipe(
  Effect.tap((database) => print({ socketPath: database.socketPath, served: "listen" in database })),
  Effect.andThen(terminated),
  Effect.scoped,
  Effect.catch((error) => print({ error: error._tag, message: error.message })),
  Effect.ensuring(Effect.sync(() => process.stdin.destroy())),
  Effect.runPromise
)
