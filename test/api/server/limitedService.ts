/**
 * A program that serves the API from the migrated database at `DATABASE_URL` until SIGTERM, and then ends when no timer
 * or socket is left. `LIMITS` contains the connection limits as a JSON object. When a connection closes, the program
 * prints how many bytes it has read from the connection.
 */
import { subscribe } from "node:diagnostics_channel"
import type { Socket } from "node:net"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import { serve } from "../../../src/adapters/inbound/http/server/Serve.ts"
import { Lifecycle } from "../../../src/application/Lifecycle.ts"
import { changeFeedLayer, databaseLayer, serviceLayer } from "../../../src/index.ts"

subscribe("net.server.socket", (message) => {
  const { socket } = message as { readonly socket: Socket }
  socket.once("close", () => console.log(`read ${socket.bytesRead} bytes`))
})

const unlimited = 1_000_000
const rateLimits = { perKey: unlimited, perProcess: unlimited }
const services = serviceLayer({ redisUrl: undefined, rateLimits }).pipe(
  Layer.provideMerge(changeFeedLayer),
  Layer.provideMerge(databaseLayer({ url: Redacted.make(process.env.DATABASE_URL!) })),
  Layer.provideMerge(Lifecycle.starting)
)

const program = Effect.gen(function* () {
  yield* serve({
    host: "127.0.0.1",
    port: Number(process.env.PORT),
    shutdownGraceMs: 0,
    limits: JSON.parse(process.env.LIMITS!)
  })
  yield* Effect.flatMap(Lifecycle, ({ markServing }) => markServing)
  yield* Effect.never
})

NodeRuntime.runMain(
  program.pipe(
    Effect.scoped,
    Effect.provide(services),
    Effect.provideService(References.MinimumLogLevel, "Warn")
  ),
  {
    teardown: (exit) => {
      process.exitCode = Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1
    }
  }
)
