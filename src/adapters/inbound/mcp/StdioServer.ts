import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { InternalError } from "../http/contract/Errors.ts"
import { bodyTooLarge, toRpcError } from "./Errors.ts"
import {
  encodeError,
  encodeResult,
  maxMessageBytes,
  parseMessage,
  type RpcId,
  type RpcError,
  type RpcMessage,
  type RpcRequest
} from "./JsonRpc.ts"
import { splitLines, tooLongLine } from "./MessageLines.ts"
import { runMethod } from "./Methods.ts"
import type { PromptCatalog } from "./PromptCatalog.ts"
import { findModeOfMeta } from "./RequestHeaders.ts"

/** The streams of a process that a client has started. */
export interface Stdio {
  readonly input: AsyncIterable<Uint8Array>
  /** Writes the line of one message. Rejects once the client no longer reads. */
  readonly writeLine: (line: string) => Promise<void>
}

/**
 * Serves a catalog over a process's standard streams until the input ends, and then completes the requests that are
 * left. Messages are lines of JSON. A client that cancels a request gets no response to it.
 */
export const serveStdio = ({ input, writeLine }: Stdio, catalog: PromptCatalog): Effect.Effect<void> =>
  Effect.gen(function* () {
    const fork = Effect.runForkWith(yield* Effect.context<never>())
    const running = new Map<RpcId, Fiber.Fiber<string>>()
    const writes = new Set<Promise<void>>()

    const write = (line: string): void => {
      const written = writeLine(line).catch(() => {})
      writes.add(written)
      void written.then(() => writes.delete(written))
    }

    const call = (request: RpcRequest) => {
      const mode = findModeOfMeta(request)
      return typeof mode === "string"
        ? runMethod(request, { mode, catalog, listChanged: false })
        : Effect.fail<RpcError>(mode)
    }

    const respond = (request: RpcRequest): Effect.Effect<string> =>
      call(request).pipe(
        Effect.map((result) => encodeResult(request.id, result)),
        Effect.catch((error) => Effect.succeed(encodeError(request.id, error))),
        Effect.catchCause((cause) =>
          Cause.hasInterruptsOnly(cause)
            ? Effect.interrupt
            : Effect.as(
                Effect.logError("Request failed", cause),
                encodeError(request.id, toRpcError(InternalError))
              )
        )
      )

    const start = (request: RpcRequest): void => {
      const fiber = fork(respond(request))
      running.set(request.id, fiber)
      fiber.addObserver((exit) => {
        if (running.get(request.id) === fiber) running.delete(request.id)
        if (Exit.isSuccess(exit)) write(exit.value)
      })
    }

    const receive = (message: RpcMessage): void => {
      if (message._tag === "Request") start(message)
      else if (message._tag === "Notification" && message.method === "notifications/cancelled")
        running.get(message.params.requestId as RpcId)?.interruptUnsafe()
    }

    const waitForAll = async (): Promise<void> => {
      while (running.size > 0 || writes.size > 0) {
        const fibers = Array.from(
          running.values(),
          (fiber) => new Promise<void>((resolve) => fiber.addObserver(() => resolve()))
        )
        await Promise.all([...fibers, ...writes])
      }
    }

    yield* Effect.promise(async () => {
      for await (const line of splitLines(input, maxMessageBytes)) {
        if (line === tooLongLine) {
          write(encodeError(undefined, bodyTooLarge))
          continue
        }
        const parsed = parseMessage(line)
        if (Result.isSuccess(parsed)) receive(parsed.success)
        else write(encodeError(parsed.failure.id, parsed.failure.error))
      }
      await waitForAll()
    })
  })
