import { once } from "node:events"
import type { AddressInfo, Server, Socket } from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { isListening } from "../programs/startProgram.ts"

/** The ports that `freePort` draws from. By default, Linux uses ports from 32,768 for outgoing connections. */
const firstPort = 10_000
const lastPort = 32_767

/**
 * The number of parts into which the ports are divided. Each vitest worker draws from a different part. Two workers
 * therefore never choose the same port, even if neither of their servers listens yet.
 */
const parts = 8
const portsPerPart = Math.floor((lastPort - firstPort + 1) / parts)
const firstOfPart = firstPort + (Number(process.env.VITEST_POOL_ID ?? 0) % parts) * portsPerPart

/** The ports that `freePort` has returned. Their servers do not all listen yet. */
const given = new Set<number>()

/**
 * Returns a random loopback port on which no process listens. Never returns a port twice. Rejects after 100 attempts.
 */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = firstOfPart + Math.floor(Math.random() * portsPerPart)
    if (given.has(port) || (await isListening(port))) continue
    given.add(port)
    return port
  }
  throw new Error("100 random ports are in use")
}

/** Starts a TCP or HTTP server on a free loopback port, until the scope closes. Returns the port. */
export const listenOnFreePort = (server: Server): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sockets = new Set<Socket>()
    server.on("connection", (socket) => {
      sockets.add(socket)
      socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket))
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
    return (server.address() as AddressInfo).port
  })
