import type { AddressInfo, Server } from "node:net"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { connectionLimits } from "./ConnectionLimits.ts"

class ListenError extends Data.TaggedError("ListenError")<{ readonly message: string }> {}

export interface ListenOptions {
  readonly host: string
  /** 0 means any free port. */
  readonly port: number
}

/**
 * Starts to listen and returns the actual address.
 *
 * @param variables the environment variables that set the address, for the error message
 */
export const listen = (
  server: Server,
  { host, port }: ListenOptions,
  variables: string
): Effect.Effect<AddressInfo, ListenError> =>
  Effect.callback((resume) => {
    // This listener stays on the server, because a later error without a listener would end the process.
    server.on("error", ({ message }) =>
      resume(new ListenError({ message: `cannot listen on ${variables}: ${message}` }))
    )
    // With Node's default backlog of 511, a burst would lose connections. The kernel can limit the backlog further.
    server.listen({ port, host, backlog: connectionLimits.maxConnections }, () =>
      resume(Effect.succeed(server.address() as AddressInfo))
    )
  })
