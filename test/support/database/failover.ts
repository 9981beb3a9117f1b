import { readFileSync, writeFileSync } from "node:fs"
import { createConnection } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import * as Effect from "effect/Effect"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { joinHosts, startClusters } from "./replicas.ts"
import { connectTo } from "../database.ts"
import { freePort } from "../ports.ts"
import { adaptConfig, runProgram } from "../programs/programs.ts"
import type { Service } from "../service.ts"
import { temporaryDirectory } from "../temporaryDirectory.ts"

/** The servers use a time zone other than UTC, so that tests fail if the service depends on the servers' time zone. */
const settings = ["timezone=Europe/Berlin"]

const example = join(import.meta.dirname, "../../../deploy/haproxy.cfg")

/** Returns the part of a URL that names the host and the port. */
const addressOf = (url: string): string => new URL(url).host

/** Starts a primary with the prompts of an archive, and a standby with a copy of them. Connects to the standby. */
export const startPair = Effect.fnUntraced(function* (archive: Archive) {
  const { primary, standbys } = yield* startClusters([{ archive }], [settings], settings)
  const standby = standbys[0]!
  const { sql } = yield* connectTo({ DATABASE_URL: standby.url })
  return {
    primary,
    standby,
    /** A URL of both servers. Clients connect to the server that accepts writes. */
    url: `${joinHosts([primary, standby])}?target_session_attrs=read-write`,
    /** Runs a statement on the standby, which stays reachable. */
    sql
  }
})
export type Pair = Effect.Success<ReturnType<typeof startPair>>

/** Makes the standby the primary, and resolves once the new primary accepts writes. */
export const promote = async ({ sql }: Pair): Promise<void> => {
  await sql("select pg_promote(true, 60)")
}

/** Runs HAProxy with `deploy/haproxy.cfg` in front of two instances of the service until the scope closes. */
export const balanceInstances = Effect.fnUntraced(function* (instances: ReadonlyArray<Service>) {
  const config = join(yield* temporaryDirectory("haproxy-"), "haproxy.cfg")
  const port = yield* Effect.promise(freePort)
  writeFileSync(
    config,
    adaptConfig(readFileSync(example, "utf8"), {
      "127.0.0.1:8080": `127.0.0.1:${port}`,
      "127.0.0.1:3000": `127.0.0.1:${instances[0]!.port}`,
      "127.0.0.1:3001": `127.0.0.1:${instances[1]!.port}`,
      // Retries would hide a lost request.
      "retry-on conn-failure empty-response": "retry-on none"
    })
  )
  yield* runProgram("haproxy", ["-db", "-f", config], port)
  return { url: `http://127.0.0.1:${port}` }
})

/** Runs HAProxy in TCP mode with backends until the scope closes. `directory` contains its configuration. */
const runTcpBalancer = Effect.fnUntraced(function* (directory: string, global: string, backends: string) {
  const port = yield* Effect.promise(freePort)
  const config = join(directory, "haproxy.cfg")
  writeFileSync(
    config,
    `global
  ${global}
defaults
  mode tcp
  timeout connect 1s
  timeout client 1h
  timeout server 1h
frontend postgres
  bind 127.0.0.1:${port}
  default_backend primary
${backends}`
  )
  yield* runProgram("haproxy", ["-db", "-f", config], port)
  return `postgres://postgres@127.0.0.1:${port}/postgres`
})

/** Runs HAProxy in TCP mode in front of a pair until the scope closes. Clients reach the primary at first. */
export const balanceServers = Effect.fnUntraced(function* ({
  primary,
  standby
}: Pick<Pair, "primary" | "standby">) {
  const directory = yield* temporaryDirectory("haproxy-")
  const socketPath = join(directory, "admin.sock")
  const url = yield* runTcpBalancer(
    directory,
    `stats socket ${socketPath} mode 600 level admin`,
    `backend primary
  balance roundrobin
  server one ${addressOf(primary.url)}
  server two ${addressOf(standby.url)} disabled
`
  )
  const send = async (command: string): Promise<void> => {
    const socket = createConnection(socketPath)
    socket.end(`${command}\n`)
    const response = (await text(socket)).trim()
    if (response !== "") throw new Error(`HAProxy: ${response}`)
  }
  return {
    url,
    /** Sends new connections to the standby, as HAProxy does when a health check finds a new primary. */
    switchOver: () => send("disable server primary/one; enable server primary/two"),
    /** Ends the connections to the first primary, as `on-marked-down shutdown-sessions` does. */
    closeOldSessions: () => send("shutdown sessions server primary/one")
  }
})
