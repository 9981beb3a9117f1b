import { connect, type Socket } from "node:net"
import type { ConnectionUrl } from "../connection/ConnectionUrl.ts"

/** The size of the receive buffer of a connection, and so the maximum size of one read of its socket. */
const receiveBytes = 64 * 1024

/**
 * Opens a socket that receives all bytes in one buffer, which the driver copies before the next read. Otherwise, Node
 * would allocate a buffer for each chunk of a large row.
 */
export const openSocket = ({ host, port }: Pick<ConnectionUrl, "host" | "port">): Socket => {
  const socket: Socket = connect({
    ...(host.startsWith("/")
      ? { path: `${host}/.s.PGSQL.${port}` }
      : // The driver writes each statement with one call, so Nagle's algorithm would only add a delay.
        { host, port, noDelay: true }),
    onread: {
      buffer: Buffer.allocUnsafeSlow(receiveBytes),
      callback: (length, buffer) => {
        socket.emit("data", buffer.subarray(0, length))
        return true
      }
    }
  })
  return socket
}
