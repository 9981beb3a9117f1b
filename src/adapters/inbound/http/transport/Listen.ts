import type { AddressInfo, Server } from "node:net"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"

export class ListenError extends Data.TaggedError("ListenError")<{ readonly message: string }> {}

/** An address to listen on. Port 0 means any free port. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/**
 * Maximum number of connections that wait to be accepted. The kernel also has a limit. With Node's default of 511, some
 * connections of a burst would be lost.
 */
const maxBacklog = 10_000

/** Starts to listen and returns the actual address. */
export const listen = (
  server: Server,
  { host, port }: ListenAddress
): Effect.Effect<AddressInfo, ListenError> =>
  Effect.callback((resume) => {
    const onError = (error: Error) => resume(Effect.fail(new ListenError({ message: error.message })))
    server.once("error", onError)
    server.listen({ port, host, backlog: maxBacklog }, () => {
      server.off("error", onError)
      resume(Effect.succeed(server.address() as AddressInfo))
    })
  })
