import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RcRef from "effect/RcRef"
import * as Redacted from "effect/Redacted"
import type { ApiError } from "../adapters/inbound/http/contract/Errors.ts"
import { type EndpointRead, LargeReads, ThreadUnavailable } from "../adapters/inbound/http/LargeReads.ts"
import type { TaggedBody } from "../adapters/inbound/http/response/Representation.ts"
import type { DatabaseOptions } from "../adapters/outbound/postgres/Database.ts"
import { makeStateLog } from "../application/StateLog.ts"
import type { ThreadDatabase, ThreadReply, ThreadRequest } from "./LargeReadWorker.ts"

/** How long the thread stays without a read. */
const idleTimeToLive = "1 minute"

/** The program of the thread, beside this file in `src` and in `dist`. */
const defaultProgram = new URL(
  import.meta.url.endsWith(".ts") ? "./LargeReadWorker.ts" : "./LargeReadWorker.js",
  import.meta.url
)

type Respond = (response: Effect.Effect<TaggedBody, ApiError>) => void

/** What happens in a thread besides its responses. */
interface ThreadEvents {
  readonly onEnd: () => void
  readonly logWarning: (message: string) => void
}

/** A running thread. */
class Thread {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Respond>()
  #lastId = 0
  /** Why the thread has ended. */
  #ended: Error | undefined

  constructor(worker: Worker, { onEnd, logWarning }: ThreadEvents) {
    this.#worker = worker
    const end = (error: Error) => {
      if (this.#ended !== undefined) return
      this.#ended = error
      onEnd()
      for (const respond of this.#waiting.values()) respond(Effect.die(error))
      this.#waiting.clear()
    }
    worker.on("message", (reply: ThreadReply) => {
      if (reply === "ready") return
      if ("warning" in reply) logWarning(`${reply.warning} (large reads)`)
      else this.#receive(reply)
    })
    worker.on("error", (cause) => end(new Error("The thread for large reads failed", { cause })))
    worker.on("exit", (code) => end(new Error(`The thread for large reads exited with code ${code}`)))
  }

  respond(read: EndpointRead): Effect.Effect<TaggedBody, ApiError> {
    return Effect.callback((resume) => {
      if (this.#ended !== undefined) return resume(Effect.die(this.#ended))
      const id = ++this.#lastId
      this.#waiting.set(id, resume)
      this.#send({ id, read })
      return Effect.sync(() => {
        if (this.#waiting.delete(id)) this.#send({ interrupt: id })
      })
    })
  }

  #send(request: ThreadRequest): void {
    this.#worker.postMessage(request)
  }

  #receive(reply: Extract<ThreadReply, { readonly id: number }>): void {
    const respond = this.#waiting.get(reply.id)
    if (respond === undefined) return
    this.#waiting.delete(reply.id)
    if ("error" in reply) respond(Effect.fail(reply.error))
    else if ("defect" in reply) respond(Effect.die(new Error(reply.defect)))
    else respond(Effect.succeed({ body: reply.body, etag: reply.etag }))
  }
}

const toThreadDatabase = (options: DatabaseOptions): ThreadDatabase =>
  "url" in options ? { url: Redacted.value(options.url) } : { socketPath: options.socketPath }

/** Starts a thread, and waits until it is ready. */
const startThread = (program: URL, workerData: ThreadDatabase, events: ThreadEvents) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<readonly [Worker, Thread], ThreadUnavailable>((resume) => {
        const worker = new Worker(program, { workerData, name: "large reads" })
        const thread = new Thread(worker, events)
        worker.once("error", ({ message }) => resume(Effect.fail(new ThreadUnavailable({ reason: message }))))
        worker.once("message", () => resume(Effect.succeed([worker, thread])))
      }),
      ([worker]) => Effect.promise(() => worker.terminate())
    ),
    ([, thread]) => thread
  )

/**
 * The thread for large reads. It starts with the first large read, which takes about half a second, and ends when it has been
 * idle for `idleTimeToLive`. If the thread fails, its in-flight reads fail, and the next large read starts a new thread.
 */
export const layer = (options: DatabaseOptions, program = defaultProgram): Layer.Layer<never> =>
  Layer.effect(
    LargeReads,
    Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const stateLog = makeStateLog({
        failed: "Large-read thread did not start; large reads run in the main thread and delay other requests"
      })
      let threads: RcRef.RcRef<Thread, ThreadUnavailable>
      const events: ThreadEvents = {
        onEnd: () => fork(RcRef.invalidate(threads)),
        logWarning: (message) => fork(Effect.logWarning(message))
      }
      threads = yield* RcRef.make({
        acquire: startThread(program, toThreadDatabase(options), events).pipe(
          Effect.tap(() => stateLog.up),
          Effect.tapError(({ reason }) => stateLog.down(reason))
        ),
        idleTimeToLive
      })
      return {
        respond: (read) => Effect.scoped(Effect.flatMap(RcRef.get(threads), (thread) => thread.respond(read)))
      }
    })
  )
