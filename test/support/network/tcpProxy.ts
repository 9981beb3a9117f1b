import { createServer, connect as dial, type Socket } from "node:net"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { listenOnFreePort } from "./ports.ts"

/** A TCP proxy on loopback that tests can interrupt. */
export type Proxy = Effect.Success<ReturnType<typeof proxyToUrl>>

/** Starts a proxy in front of the PostgreSQL or Redis server of a URL. */
export const proxyToUrl = Effect.fnUntraced(function* (databaseUrl: string) {
  const target = new URL(databaseUrl)
  const socketDirectory = target.searchParams.get("host")
  const socket = socketDirectory === null ? null : join(socketDirectory, ".s.PGSQL.5432")
  const sockets = new Set<Socket>()
  const silenced = new WeakSet<Socket>()
  let frozen = false
  let delayMs = 0
  /** Returns a function that delivers chunks in order, each after the delay that is set when the chunk arrives. */
  const makeDelivery = (deliver: (chunk: Buffer) => void) => {
    let last = Promise.resolve()
    return (chunk: Buffer): void => {
      const elapsed = delayMs === 0 ? Promise.resolve() : setTimeout(delayMs)
      last = last.then(async () => {
        await elapsed
        deliver(chunk)
      })
    }
  }
  const track = (socket: Socket): void => {
    sockets.add(socket)
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket))
    if (frozen) socket.pause()
  }
  const server = createServer((near) => {
    const far = socket === null ? dial(Number(target.port || 5432), target.hostname) : dial(socket)
    near.on("data", (chunk) => far.write(chunk)).on("close", () => far.destroy())
    const deliver = makeDelivery((chunk) => near.write(chunk))
    far.on("data", deliver).on("close", () => near.destroy())
    track(near)
    track(far)
  })
  const port = yield* listenOnFreePort(server)
  const url = new URL(databaseUrl)
  url.searchParams.delete("host")
  url.hostname = "127.0.0.1"
  url.port = String(port)
  return {
    url: url.href,
    /** Stops forwarding in both directions until `thaw`. Connections stay open. */
    freeze: Effect.sync(() => {
      frozen = true
      for (const socket of sockets) socket.pause()
    }),
    thaw: Effect.sync(() => {
      frozen = false
      for (const socket of sockets) if (!silenced.has(socket)) socket.resume()
    }),
    /** Permanently stops forwarding on open connections, like a router that lost their state. New connections work. */
    silence: Effect.sync(() => {
      for (const socket of sockets) silenced.add(socket.pause())
    }),
    /** Closes every open connection. */
    cut: Effect.sync(() => {
      for (const socket of sockets) socket.destroy()
    }),
    /** Sets the delay, in milliseconds, of all bytes that the server sends from now on. */
    delay: (milliseconds: number): void => {
      delayMs = milliseconds
    }
  }
})
