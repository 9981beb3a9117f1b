import * as Effect from "effect/Effect"
import { createPromptApi } from "../../src/index.ts"
import { postgresEnv } from "../../test/support/database/connection.ts"
import { type PoolMode, runPgBouncer } from "../../test/support/database/pgbouncer.ts"
import { connectClient } from "../../test/support/database/server.ts"
import { freePort } from "../../test/support/network/ports.ts"
import { proxyToUrl } from "../../test/support/network/tcpProxy.ts"
import { endProcess } from "../../test/support/programs/startProgram.ts"
import { startService, unlimited } from "../../test/support/services/startService.ts"

/** An instance of the service: a process that another process on the same port can replace. */
export type Instance = Effect.Success<ReturnType<typeof startInstance>>

/** Starts an instance that does not limit requests. Closing the scope kills the process of the instance. */
const startInstance = Effect.fnUntraced(function* (
  name: string,
  databaseUrl: string,
  feedUrl: string,
  outageMaxAge: string
) {
  const [reads, feed] = [yield* proxyToUrl(databaseUrl), yield* proxyToUrl(feedUrl)]
  const port = yield* Effect.promise(freePort)
  const start = () =>
    startService({
      DATABASE_URL: reads.url,
      DATABASE_FEED_URL: feed.url,
      OUTAGE_MAX_AGE: outageMaxAge,
      PORT: String(port),
      ...unlimited,
      SHUTDOWN_GRACE: "100ms",
      LOG_LEVEL: "Warn"
    })
  let service = yield* Effect.promise(start)
  let generation: number | undefined = 0
  yield* Effect.addFinalizer(() => Effect.promise(() => endProcess(service.process, "SIGKILL")))
  return {
    name,
    url: service.url,
    /** The proxy through which the process reads the database. */
    reads,
    /** The proxy through which the process receives notifications of the database. */
    feed,
    /** Returns the name of the running process, or undefined while no process is running. */
    process: () => (generation === undefined ? undefined : `${name}, process ${generation}`),
    /** Ends the process and starts another process. */
    restart: async (signal: "SIGTERM" | "SIGKILL"): Promise<void> => {
      const next = generation! + 1
      generation = undefined
      await (signal === "SIGKILL" ? endProcess(service.process, signal) : service.stop())
      service = await start()
      generation = next
    }
  }
})

/** Two instances of the service on one database behind PgBouncer. Histories run on a stage one after another. */
export type Stage = Effect.Success<ReturnType<typeof startStage>>

export interface StageOptions {
  readonly poolMode: PoolMode
  /** The maximum age of the responses that an instance serves during an outage of its database, such as "0 seconds". */
  readonly outageMaxAge: string
}

/** Starts a stage with a new database on the server at TEST_DATABASE_URL. */
export const startStage = Effect.fnUntraced(function* ({ poolMode, outageMaxAge }: StageOptions) {
  const { DATABASE_URL } = yield* postgresEnv
  const databaseUrl = DATABASE_URL!
  const pooler = yield* runPgBouncer(databaseUrl, poolMode)
  const instances = yield* Effect.forEach(
    ["instance 0", "instance 1"],
    (name) => startInstance(name, pooler.url, databaseUrl, outageMaxAge),
    { concurrency: 2 }
  )
  // Without a change feed, the API caches nothing.
  const reference = yield* Effect.acquireRelease(
    Effect.promise(() =>
      createPromptApi({
        databaseUrl,
        databaseFeedUrl: "postgres://127.0.0.1:1/none",
        outageMaxAge: 0,
        rateLimits: { perKey: 1_000_000, perProcess: 1_000_000 },
        logger: {}
      })
    ),
    ({ close }) => Effect.promise(close)
  )
  return {
    /** Connects to the database directly. */
    sql: yield* connectClient(databaseUrl),
    instances,
    /** Reads the database directly and caches nothing. */
    reference,
    restartPooler: pooler.restart
  }
})
