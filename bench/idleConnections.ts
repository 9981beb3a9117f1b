import { once } from "node:events"
import { connect, type Socket } from "node:net"
import type { Stream } from "./load.ts"
import type { ServerProcess } from "./processes.ts"

/** Connections that are opened at the same time. */
const concurrency = 100

/** Connections that have received one response and then send nothing. */
export interface IdleConnections {
  /** Throws if the server has closed a connection. */
  readonly assertOpen: () => void
  readonly close: () => void
}

const openOne = async (port: number, request: string): Promise<Socket> => {
  const socket = connect(port, "127.0.0.1")
  await once(socket, "connect")
  socket.write(request)
  const [start] = (await once(socket, "data")) as [Buffer]
  if (!start.subarray(0, 12).equals(Buffer.from("HTTP/1.1 200")))
    throw new Error(`got ${start.subarray(0, 12)}`)
  return socket.on("error", () => {}).resume()
}

/** Opens keep-alive connections to a server, each of which sends the first request of a stream once. */
export const openIdleConnections = async (
  { port }: ServerProcess,
  count: number,
  { targets, key }: Stream
): Promise<IdleConnections> => {
  const request = `GET ${targets[0]} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n\r\n`
  const sockets: Array<Socket> = []
  while (sockets.length < count) {
    const missing = Math.min(concurrency, count - sockets.length)
    sockets.push(...(await Promise.all(Array.from({ length: missing }, () => openOne(port, request)))))
  }
  return {
    assertOpen: () => {
      const closed = sockets.filter((socket) => socket.readableEnded || socket.destroyed).length
      if (closed > 0) throw new Error(`${closed} idle connections were closed`)
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
    }
  }
}
