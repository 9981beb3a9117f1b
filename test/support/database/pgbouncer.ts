import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { freePort } from "../network/ports.ts"
import { endProcess, startProgram } from "../programs/startProgram.ts"
import { temporaryDirectory } from "../testDirectory.ts"

/** How long a client keeps a server connection. */
export type PoolMode = "session" | "transaction"

/** Starts PgBouncer in front of the database with this URL. Its pool sizes and timeouts are the defaults. */
export const runPgBouncer = Effect.fnUntraced(function* (databaseUrl: string, mode: PoolMode) {
  const home = yield* temporaryDirectory("pgbouncer-")
  const port = yield* Effect.promise(freePort)
  const target = new URL(databaseUrl)
  const database = target.pathname.slice(1)
  const config = join(home, "pgbouncer.ini")
  // PgBouncer refuses to run as root. The user that runs PgBouncer must be able to read its files.
  const isRoot = process.getuid!() === 0
  writeFileSync(join(home, "users.txt"), `"${target.username}" "${target.password}"\n`)
  writeFileSync(
    config,
    `[databases]
${database} = host=${target.hostname} port=${target.port || 5432}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(home, "users.txt")}
pool_mode = ${mode}
`
  )
  if (isRoot) chmodSync(home, 0o755)
  const args = [...(isRoot ? ["-u", "nobody"] : []), config]
  const start = () => startProgram("pgbouncer", args, port)
  let child = yield* Effect.promise(start)
  yield* Effect.addFinalizer(() => Effect.promise(() => endProcess(child)))
  target.host = `127.0.0.1:${port}`
  return {
    /** The URL that connects to the database through PgBouncer. */
    url: target.href,
    /** Kills PgBouncer and starts it again on the same port. */
    restart: async () => {
      await endProcess(child, "SIGKILL")
      child = await start()
    }
  }
})
