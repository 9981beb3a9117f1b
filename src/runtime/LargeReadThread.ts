import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ApiError } from "../adapters/inbound/http/contract/Errors.ts"
import { type EndpointRead, LargeReads, ThreadUnavailable } from "../adapters/inbound/http/LargeReads.ts"
import type { BodyWithEtag } from "../adapters/inbound/http/response/Representation.ts"
import { DatabaseServer } from "../adapters/outbound/postgres/connection/DatabaseServer.ts"
import { Unavailable } from "../application/ports/Unavailable.ts"
import { makeStateLog } from "../application/StateLog.ts"
import type { ThreadDatabase, ThreadReply, ThreadRequest } from "./LargeReadWorker.ts"

/** How long an idle thread stays, in milliseconds. */
const idleMs = 60_000
/** How long a read waits for a thread that starts before it runs in the main thread, in milliseconds. */
const startTimeoutMs = 2_000
/** The delay before another start after a failed start, in milliseconds. */
const startRetryDelayMs = 60_000
/** How long a closing service waits for reads in flight, in milliseconds. */
const closeTimeoutMs = 5_000

/** Returns the program of the thread, beside this file in `src` and in `dist`. Throws in a CommonJS bundle. */
const findProgram = (): URL => {
  const { url } = import.meta as Partial<ImportMeta>
  if (url === undefined) throw new Error("the bundle does not contain the program of the thread")
  return new URL(url.endsWith(".ts") ? "./LargeReadWorker.ts" : "./LargeReadWorker.js", url)
}

type Respond = (response: Effect.Effect<BodyWithEtag, ApiError | ThreadUnavailable>) => void

/** Events of a thread other than its responses. */
interface ThreadEvents {
  readonly onReady: () => void
  readonly onIdle: () => void
  /** Called once, with the reason and whether the thread had been ready. */
  readonly onEnd: (reason: string, wasReady: boolean) => void
  readonly onWarning: (message: string) => void
}

/** A thread. Reads that are sent while it starts wait in its message queue. */
class Thread {
  readonly #worker: Worker
  readonly #events: ThreadEvents
  readonly #waiting = new Map<number, Respond>()
  #lastId = 0
  #isReady = false
  #hasEnded = false

  /** Throws if this process may not start threads. */
  constructor(program: URL, workerData: ThreadDatabase, events: ThreadEvents) {
    this.#events = events
    this.#worker = new Worker(program, { workerData, name: "large reads" })
      .on("message", (reply: ThreadReply) => this.#receive(reply))
      .on("error", (error: unknown) => this.#end(error instanceof Error ? error.message : String(error)))
      .on("exit", (code) => this.#end(`it exited with code ${code}`))
  }

  respond(read: EndpointRead): Effect.Effect<BodyWithEtag, ApiError | ThreadUnavailable> {
    return Effect.callback((resume) => {
      const id = ++this.#lastId
      const cancel = (): boolean => {
        clearTimeout(timer)
        if (!this.#waiting.delete(id)) return false
        this.#send({ interrupt: id })
        this.#reportIdle()
        return true
      }
      const timer = setTimeout(() => {
        if (!this.#isReady && cancel())
          resume(Effect.fail(new ThreadUnavailable({ reason: "it did not start in time" })))
      }, startTimeoutMs)
      this.#waiting.set(id, (response) => {
        clearTimeout(timer)
        resume(response)
      })
      this.#send({ id, read })
      return Effect.sync(() => void cancel())
    })
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0
  }

  async terminate(): Promise<void> {
    this.#respondToAll(Effect.fail(Unavailable))
    await this.#worker.terminate()
  }

  #send(request: ThreadRequest): void {
    this.#worker.postMessage(request)
  }

  #receive(reply: ThreadReply): void {
    if (reply === "ready") {
      this.#isReady = true
      this.#events.onReady()
    } else if ("warning" in reply) {
      this.#events.onWarning(`${reply.warning} (large reads)`)
    } else {
      const respond = this.#waiting.get(reply.id)
      if (respond === undefined) return
      this.#waiting.delete(reply.id)
      if ("error" in reply) respond(Effect.fail(reply.error))
      else if ("defect" in reply) respond(Effect.die(new Error(reply.defect)))
      else {
        const { body, etag, promptVersion } = reply
        respond(Effect.succeed({ body, etag, promptVersion }))
      }
      this.#reportIdle()
    }
  }

  #reportIdle(): void {
    if (this.isIdle && !this.#hasEnded) this.#events.onIdle()
  }

  #end(reason: string): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#events.onEnd(reason, this.#isReady)
    this.#respondToAll(
      this.#isReady
        ? Effect.die(new Error(`The large-read thread failed: ${reason}`))
        : Effect.fail(new ThreadUnavailable({ reason }))
    )
  }

  #respondToAll(response: Parameters<Respond>[0]): void {
    for (const respond of this.#waiting.values()) respond(response)
    this.#waiting.clear()
  }
}

/**
 * Starts a thread with the first large read, which takes about half a second, and ends it once it has been idle for
 * `idleMs`. If the thread fails, its in-flight reads fail, and the next read starts a new thread. A thread that
 * does not start makes reads fail with `ThreadUnavailable`.
 */
class ManagedThread {
  readonly #findProgram: () => URL
  readonly #findDatabase: () => ThreadDatabase
  readonly #fork: (effect: Effect.Effect<void>) => void
  readonly #stateLog = makeStateLog({
    failed: "Large-read thread did not start; large reads run in the main thread and delay other requests"
  })
  #thread: Thread | undefined
  #idleTimer: NodeJS.Timeout | undefined
  #failedAt = Number.NEGATIVE_INFINITY

  constructor(
    findProgram: () => URL,
    findDatabase: () => ThreadDatabase,
    fork: (effect: Effect.Effect<void>) => void
  ) {
    this.#findProgram = findProgram
    this.#findDatabase = findDatabase
    this.#fork = fork
  }

  respond(read: EndpointRead): Effect.Effect<BodyWithEtag, ApiError | ThreadUnavailable> {
    return Effect.suspend(() => {
      clearTimeout(this.#idleTimer)
      this.#thread ??= this.#start()
      return this.#thread === undefined
        ? Effect.fail(new ThreadUnavailable({ reason: "it did not start" }))
        : this.#thread.respond(read)
    })
  }

  /** Waits for the reads in flight, then ends the thread. */
  async close(): Promise<void> {
    const deadline = performance.now() + closeTimeoutMs
    while (this.#thread?.isIdle === false && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 20))
    await this.#terminate()
  }

  /** Ends the thread, whose connections may lead to a server that was replaced. The next read starts another one. */
  replace(): void {
    void this.#terminate()
  }

  #start(): Thread | undefined {
    if (performance.now() - this.#failedAt < startRetryDelayMs) return undefined
    const fail = (reason: string) => {
      this.#failedAt = performance.now()
      this.#fork(this.#stateLog.down(reason))
    }
    try {
      const thread = new Thread(this.#findProgram(), this.#findDatabase(), {
        onReady: () => this.#fork(this.#stateLog.up),
        onIdle: () => {
          this.#idleTimer = setTimeout(() => void this.#terminate(), idleMs).unref()
        },
        onEnd: (reason, wasReady) => {
          if (this.#thread !== thread) return
          this.#thread = undefined
          if (!wasReady) fail(reason)
        },
        onWarning: (message) => this.#fork(Effect.logWarning(message))
      })
      return thread
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error))
      return undefined
    }
  }

  async #terminate(): Promise<void> {
    clearTimeout(this.#idleTimer)
    const thread = this.#thread
    this.#thread = undefined
    await thread?.terminate()
  }
}

/** The large-read thread. `program` replaces its program in tests. */
export const layer = (program?: URL): Layer.Layer<never, never, DatabaseServer> =>
  Layer.effect(
    LargeReads,
    Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const server = yield* DatabaseServer
      // The change feed watches the server that the process has selected.
      const findDatabase = () => ({ url: server.findSelectedUrl() })
      const threads = yield* Effect.acquireRelease(
        Effect.sync(() => new ManagedThread(() => program ?? findProgram(), findDatabase, fork)),
        (threads) => Effect.promise(() => threads.close())
      )
      server.onChange(() => threads.replace())
      return { respond: (read) => threads.respond(read) }
    })
  )
