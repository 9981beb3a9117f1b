import * as Effect from "effect/Effect"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { freePort } from "../network/ports.ts"
import { adaptConfig, runHaproxy } from "../programs/startProgram.ts"
import { run, type Service } from "../services/startService.ts"
import { type Cluster, freshCluster, makeStandby } from "./cluster.ts"
import { connectTo } from "./connection.ts"

/** The servers use a time zone other than UTC, so that tests fail if the service depends on the servers' time zone. */
const settings = ["timezone=Europe/Berlin"]

/** A primary and its standby. */
export interface Pair {
  readonly primary: Cluster
  readonly standby: Cluster
}

/** Starts a primary with the prompts of an archive, and a standby with a copy of them. */
export const startPair = Effect.fnUntraced(function* (archive: Archive) {
  const primary = yield* freshCluster
  yield* Effect.promise(() => primary.start(settings))
  const env = { DATABASE_URL: primary.url }
  const { code, stderr } = yield* Effect.promise(() => run(["migrate"], env))
  if (code !== 0) throw new Error(stderr)
  yield* Effect.scoped(
    Effect.flatMap(connectTo(env), ({ importArchive }) => Effect.promise(() => importArchive(archive)))
  )
  const standby = yield* makeStandby(primary)
  yield* Effect.promise(() => standby.start(settings))
  return { primary, standby }
})

/** Runs HAProxy with `deploy/haproxy.cfg` in front of two instances of the service until the scope closes. */
export const balanceInstances = Effect.fnUntraced(function* (instances: ReadonlyArray<Service>) {
  const port = yield* Effect.promise(freePort)
  const config = adaptConfig("haproxy.cfg", {
    "bind :443 ssl crt /etc/haproxy/prompt-retrieval.pem alpn h2,http/1.1": `bind 127.0.0.1:${port}`,
    "127.0.0.1:3000": `127.0.0.1:${instances[0]!.port}`,
    "127.0.0.1:3001": `127.0.0.1:${instances[1]!.port}`,
    // Retries would hide a lost request.
    "retry-on conn-failure empty-response": "retry-on none"
  })
  yield* runHaproxy(config, port)
  return { url: `http://127.0.0.1:${port}` }
})

/**
 * Runs HAProxy with `deploy/compose/haproxy-postgres.cfg` in front of a pair until the scope closes. Returns the URL of
 * HAProxy, which leads to the primary. Creates the role of HAProxy's checks.
 */
export const followPrimary = Effect.fnUntraced(function* ({ primary, standby }: Pair) {
  const { sql } = yield* connectTo({ DATABASE_URL: primary.url })
  yield* Effect.promise(() => sql("create role haproxy login"))
  const port = yield* Effect.promise(freePort)
  const config = adaptConfig("compose/haproxy-postgres.cfg", {
    "bind :5432": `bind 127.0.0.1:${port}`,
    "primary:5432": new URL(primary.url).host,
    "standby:5432": new URL(standby.url).host
  })
  yield* runHaproxy(config, port)
  return `postgres://postgres@127.0.0.1:${port}/postgres`
})
