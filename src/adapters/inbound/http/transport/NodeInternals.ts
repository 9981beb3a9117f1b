/**
 * The undocumented parts of Node that this server uses. The tests in test/api/transport/connections.test.ts cover them.
 */
import { Server, type Socket } from "node:net"

/** Node's handle of a socket: the bytes written so far, and how many of them the kernel has not accepted yet. */
export interface SocketHandle {
  readonly bytesWritten: number
  readonly writeQueueSize: number
}

/**
 * Returns the handle of a socket, or `undefined` once the socket is closed. Only the handle shows the progress of a
 * large write: `socket.bytesWritten` counts bytes that are still queued, and `socket.writableLength` falls only when
 * the whole write is done.
 */
export const findSocketHandle = (socket: Socket): SocketHandle | undefined =>
  (socket as unknown as { readonly _handle?: SocketHandle | null })._handle ?? undefined

/**
 * Makes Node's parser drop the remaining requests of the chunk that it is reading. A chunk of 64 KiB can contain 2,500
 * requests. In a flood of pipelined requests, most of the cost would be the parsing of requests whose connections are
 * already destroyed.
 */
export const stopParsing = (socket: Socket): void => {
  const { parser } = socket as unknown as { readonly parser?: { onIncoming?: () => number } | null }
  // 2 means "upgraded", which stops the parser.
  if (parser?.onIncoming) parser.onIncoming = () => 2
}

/** Lets clients half-close a connection after they have sent a request; they still get a response. */
export const allowHalfOpenConnections = (server: Server): void => {
  Object.assign(server, { httpAllowHalfOpen: true })
}

/**
 * Stops listening, and calls `onClosed` once every connection is closed. The `close` method of Node's HTTP server is
 * not used, because this method destroys connections whose responses are not sent completely, and leaves connections
 * with incomplete request heads open.
 */
export const closeListener = (server: Server, onClosed: () => void): void => {
  Server.prototype.close.call(server, onClosed)
}
