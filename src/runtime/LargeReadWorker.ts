/** The entry point of the large-read thread (`LargeReadThread`). */
import "effect/schema/SchemaJITCompiler/enable"
import { readlinkSync } from "node:fs"
import { getPriority, setPriority } from "node:os"
import { basename } from "node:path"
import { parentPort, workerData } from "node:worker_threads"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import { makeEndpoints } from "../adapters/inbound/http/Endpoints.ts"
import type { ApiError } from "../adapters/inbound/http/contract/Errors.ts"
import type { EndpointRead } from "../adapters/inbound/http/LargeReads.ts"
import type { BodyWithEtag } from "../adapters/inbound/http/response/Representation.ts"
import { Database } from "../adapters/outbound/postgres/Database.ts"
import * as PostgresPromptRepo from "../adapters/outbound/postgres/PostgresPromptRepo.ts"
import { LargeReadPolicy } from "../application/LargeReadPolicy.ts"
import { Prompts } from "../application/Prompts.ts"

/** The database, as data that can be sent to a thread. */
export interface ThreadDatabase {
  readonly url: string
}

/** A message to the thread: a read to respond to, or the id of a read to interrupt. */
export type ThreadRequest =
  | { readonly id: number; readonly read: EndpointRead }
  | { readonly interrupt: number }

/** A message from the thread: that it is ready, a warning, or the outcome of a read that was not interrupted. */
export type ThreadReply =
  | "ready"
  | { readonly warning: string }
  | ({ readonly id: number } & (BodyWithEtag | { readonly error: ApiError } | { readonly defect: string }))

/**
 * Lowers the priority of this thread, so that the service's other requests come first when processors are short.
 * Other processes then come first, too, so the difference is small. Linux accepts the id of a thread as that of a
 * process; elsewhere the priority stays.
 */
const lowerPriority = (): void => {
  try {
    setPriority(Number(basename(readlinkSync("/proc/thread-self"))), Math.min(getPriority() + 5, 19))
  } catch {
    // The priority stays.
  }
}

const port = parentPort as NonNullable<typeof parentPort>
const database = workerData as ThreadDatabase
lowerPriority()

/** Sends warnings to the service, which logs them. Errors are the outcomes of reads. */
const warningSender = Logger.make(({ message }) =>
  port.postMessage({ warning: [message].flat().join(" ") } satisfies ThreadReply)
)

const runtime = ManagedRuntime.make(
  Prompts.layer.pipe(
    Layer.provide(PostgresPromptRepo.layer),
    Layer.provide(Database.layer("url" in database ? { url: Redacted.make(database.url) } : database)),
    Layer.provideMerge(
      Layer.mergeAll(
        Logger.layer([warningSender]),
        Layer.succeed(References.MinimumLogLevel, "Warn"),
        Layer.succeed(References.TracerEnabled, false),
        Layer.succeed(LargeReadPolicy, "expect")
      )
    )
  )
)
const endpoints = await runtime.runPromise(makeEndpoints)
const running = new Map<number, Fiber.Fiber<BodyWithEtag, ApiError>>()

/** Returns the reply to a read, or `undefined` if the read was interrupted. */
const toReply = (id: number, exit: Exit.Exit<BodyWithEtag, ApiError>): ThreadReply | undefined => {
  if (Exit.isSuccess(exit)) return { id, ...exit.value }
  if (Cause.hasInterruptsOnly(exit.cause)) return undefined
  const error = Cause.findErrorOption(exit.cause)
  return error._tag === "Some" ? { id, error: error.value } : { id, defect: Cause.pretty(exit.cause) }
}

port.on("message", (request: ThreadRequest) => {
  if ("interrupt" in request) return running.get(request.interrupt)?.interruptUnsafe()
  const { id, read } = request
  const endpoint = endpoints.get(read.matched.route)
  const fiber = runtime.runFork(
    endpoint === undefined
      ? Effect.die(new Error(`No endpoint has the path ${read.matched.route}`))
      : endpoint(read.caller, read.matched)
  )
  running.set(id, fiber)
  fiber.addObserver((exit) => {
    running.delete(id)
    const reply = toReply(id, exit)
    // The memory of a body moves to the main thread.
    if (reply !== undefined) port.postMessage(reply, Exit.isSuccess(exit) ? [exit.value.body.buffer] : [])
  })
})
port.postMessage("ready" satisfies ThreadReply)
