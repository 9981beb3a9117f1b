import { connect, type Socket } from "node:net"
import type { ConnectionUrl } from "../connection/ConnectionUrl.ts"

/**
 * The size of the buffer that receives the bytes of a connection. One read of a socket returns at most this many bytes.
 */
const receiveBytes = 64 * 1024

/**
 * Opens a socket that receives all bytes into the same buffer. The driver copies the bytes before the next read.
 * Without this buffer, each chunk of a large row would be a separate buffer.
 */
export const openSocket = ({ host, port }: Pick<ConnectionUrl, "host" | "port">): Socket => {
  const socket: Socket = connect({
    ...(host.startsWith("/")
      ? { path: `${host}/.s.PGSQL.${port}` }
      : // Nagle's algorithm would only delay a statement, because the driver writes each statement with one call.
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
