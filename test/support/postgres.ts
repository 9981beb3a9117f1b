import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { Database } from "../../src/adapters/outbound/postgres/Database.ts"
import { migrate } from "../../src/adapters/outbound/postgres/Migrations.ts"

const serverUrl = process.env.TEST_DATABASE_URL

/** Why tests against a real PostgreSQL are left out here; `undefined` where they run. */
export const noPostgres: string | undefined = serverUrl ? undefined : "TEST_DATABASE_URL is not set"
if (noPostgres !== undefined) {
  if (process.env.CI !== undefined) throw new Error(noPostgres)
  console.warn(`Tests of PostgreSQL are left out: ${noPostgres}`)
}

/** The address of a database of the server, in the name of another role if one is given. */
export const urlOf = (database: string, role?: string): string => {
  const url = new URL(serverUrl!)
  url.pathname = `/${database}`
  if (role !== undefined) url.username = role
  return url.href
}

/** A random name, which no other test has, for what is shared by a server. */
export const freshName = (): string => `pr_${randomBytes(8).toString("hex")}`

/** Runs one statement on the server itself. */
export const onServer = (statement: string): Effect.Effect<void> =>
  Effect.asVoid(Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(statement))).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(serverUrl!) })),
    Effect.orDie
  )

/** The name of a new, empty database, which goes with the scope whoever is still connected. */
export const freshDatabase: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.tap(Effect.sync(freshName), (name) => onServer(`create database ${name} template template0`)),
  (name) => onServer(`drop database ${name} with (force)`)
)

/** The adapter's database layer on a database by name. */
export const connect = (database: string, role?: string) =>
  Database.layer({ url: Redacted.make(urlOf(database, role)) })

/** A database of its own without any table. */
export const emptyDatabase = Layer.unwrap(Effect.map(freshDatabase, (name) => connect(name)))

/** A database of its own with every table and no row. */
export const migratedDatabase = Layer.effectDiscard(Effect.orDie(migrate)).pipe(
  Layer.provideMerge(emptyDatabase)
)

/** A TCP server on loopback that may go silent: what it is sent then, and what it would answer, waits until it thaws. */
export interface Proxy {
  readonly url: string
  readonly freeze: Effect.Effect<void>
  readonly thaw: Effect.Effect<void>
  /** Connections that are open go silent for good, as when a router forgets them; new ones work. */
  readonly silence: Effect.Effect<void>
  /** Ends every connection that is open. */
  readonly cut: Effect.Effect<void>
}

/** Takes what a server sends apart into messages, and leaves out notices, as a pooler does. */
const withoutNotices = () => {
  let rest = Buffer.alloc(0)
  return (chunk: Buffer): Buffer => {
    rest = Buffer.concat([rest, chunk])
    const passed: Array<Buffer> = []
    while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
      const message = rest.subarray(0, 1 + rest.readInt32BE(1))
      if (message[0] !== "A".charCodeAt(0)) passed.push(message)
      rest = rest.subarray(message.length)
    }
    return Buffer.concat(passed)
  }
}

/** A proxy before a database of the server; a `pooler` keeps notices back. */
export const proxyTo = (
  database: string,
  options: { readonly pooler: boolean } = { pooler: false }
): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.gen(function* () {
    const target = new URL(serverUrl!)
    const sockets = new Set<Socket>()
    const silenced = new WeakSet<Socket>()
    let frozen = false
    const keep = (socket: Socket): void => {
      sockets.add(socket)
      socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket))
      if (frozen) socket.pause()
    }
    const server = createServer((near) => {
      const far = dial(Number(target.port || 5432), target.hostname)
      const pass = options.pooler ? withoutNotices() : (chunk: Buffer) => chunk
      near.on("data", (chunk) => far.write(chunk)).on("close", () => far.destroy())
      far.on("data", (chunk) => near.write(pass(chunk))).on("close", () => near.destroy())
      keep(near)
      keep(far)
    })
    const cut = Effect.sync(() => {
      for (const socket of sockets) socket.destroy()
    })
    yield* Effect.acquireRelease(
      Effect.promise(() => once(server.listen(0, "127.0.0.1"), "listening")),
      () =>
        Effect.promise(async () => {
          const closed = once(server, "close")
          server.close()
          for (const socket of sockets) socket.destroy()
          await closed
        })
    )
    const url = new URL(urlOf(database))
    url.hostname = "127.0.0.1"
    url.port = String((server.address() as AddressInfo).port)
    return {
      url: url.href,
      freeze: Effect.sync(() => {
        frozen = true
        for (const socket of sockets) socket.pause()
      }),
      thaw: Effect.sync(() => {
        frozen = false
        for (const socket of sockets) if (!silenced.has(socket)) socket.resume()
      }),
      silence: Effect.sync(() => {
        for (const socket of sockets) silenced.add(socket.pause())
      }),
      cut
    }
  })
