import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { freePort } from "../ports.ts"
import { type Proxy, proxyToUrl } from "../postgres.ts"
import { endProcess } from "../programs/programs.ts"
import { type Service, startService, unlimited } from "../service.ts"

/** A process of the service that can be replaced by another process on the same port. */
export interface Instance {
  readonly name: string
  readonly url: string
  /** Returns the name of the running process, or undefined while no process is running. */
  readonly process: () => string | undefined
  /** Ends the process and starts another process. */
  readonly restart: (signal: "SIGTERM" | "SIGKILL") => Promise<void>
  /** The proxy between the process and the database that the process reads. */
  readonly reads: Proxy
  /** The proxy between the process and the database whose notifications the process receives. */
  readonly feed: Proxy
}

export interface InstanceOptions {
  readonly name: string
  readonly databaseUrl: string
  readonly feedUrl: string
  readonly env: Readonly<Record<string, string>>
}

/** Starts an instance that does not limit requests. Closing the scope kills its process. */
export const startInstance = ({
  name,
  databaseUrl,
  feedUrl,
  env
}: InstanceOptions): Effect.Effect<Instance, never, Scope.Scope> =>
  Effect.gen(function* () {
    const reads = yield* proxyToUrl(databaseUrl)
    const feed = yield* proxyToUrl(feedUrl)
    const port = yield* Effect.promise(freePort)
    const start = () =>
      startService({
        DATABASE_URL: reads.url,
        DATABASE_FEED_URL: feed.url,
        PORT: String(port),
        ...unlimited,
        SHUTDOWN_GRACE: "100ms",
        LOG_LEVEL: "Warn",
        ...env
      })
    const kill = ({ process }: Service) => endProcess(process, "SIGKILL")
    let service = yield* Effect.promise(start)
    let generation: number | undefined = 0
    yield* Effect.addFinalizer(() => Effect.promise(() => kill(service)))
    return {
      name,
      url: service.url,
      reads,
      feed,
      process: () => (generation === undefined ? undefined : `${name}, process ${generation}`),
      restart: async (signal) => {
        const next = generation! + 1
        generation = undefined
        await (signal === "SIGKILL" ? kill(service) : service.stop())
        service = await start()
        generation = next
      }
    }
  })
