/** A worker process of `herd.ts`: many applications, each with a client, which read their prompts at fixed intervals. */
import { setPriority } from "node:os"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout } from "node:timers/promises"
import { PromptClient } from "../client/src/index.ts"

/** An application. Times are in milliseconds since 1970, so that several processes can compare them. */
export interface Application {
  readonly apiKey: string
  readonly prompt: string
  readonly startsAt: number
}

/** The applications that a worker process runs, and the options of their clients. */
export interface Assignment {
  readonly url: string
  readonly applications: ReadonlyArray<Application>
  readonly ttl: number
  readonly maxStale: number
  /** How often each application reads its prompt, in milliseconds. */
  readonly readInterval: number
}

/** A request that got a response. */
export interface Exchange {
  readonly sentAt: number
  readonly receivedAt: number
  /** The position of the application in the assignment. */
  readonly application: number
  readonly status: number
}

/** The observations of a worker process. */
export interface Observations {
  readonly exchanges: ReadonlyArray<Exchange>
  /** The times at which requests without a response were sent. */
  readonly lost: ReadonlyArray<number>
  /** Reads that rejected. */
  readonly failedReads: number
  /** Reads that returned the fallback although the client had received a text. */
  readonly needlessFallbacks: number
  /** The longest delay of the event loop, in milliseconds. */
  readonly maxDelay: number
}

/** Runs the applications until the parent process sends another message. */
const run = async ({ url, applications, ttl, maxStale, readInterval }: Assignment): Promise<Observations> => {
  const stopping = new AbortController()
  process.once("message", () => stopping.abort())
  const exchanges: Array<Exchange> = []
  const lost: Array<number> = []
  let failedReads = 0
  let needlessFallbacks = 0

  const runApplication = async ({ apiKey, prompt, startsAt }: Application, application: number) => {
    let hasText = false
    const client = new PromptClient({
      apiKey,
      baseUrl: url,
      cache: { ttl, maxStale },
      fetch: async (url, init) => {
        const sentAt = Date.now()
        try {
          const response = await fetch(url, init)
          exchanges.push({ sentAt, receivedAt: Date.now(), application, status: response.status })
          return response
        } catch (error) {
          lost.push(sentAt)
          throw error
        }
      }
    })
    const read = async () => {
      try {
        const { source } = await client.prompts.getResolved(prompt, { fallback: "fallback" })
        if (source !== "fallback") hasText = true
        else if (hasText) needlessFallbacks++
      } catch {
        failedReads++
      }
    }
    for (let readAt = startsAt; !stopping.signal.aborted; readAt += readInterval) {
      await setTimeout(Math.max(0, readAt - Date.now()), undefined, { signal: stopping.signal })
      void read()
    }
  }

  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()
  await Promise.allSettled(applications.map(runApplication))
  return { exchanges, lost, failedReads, needlessFallbacks, maxDelay: delays.max / 1_000_000 }
}

// The parent process has ended, perhaps by a signal.
process.once("disconnect", () => process.exit())
try {
  // The applications stand for other machines, so other work on this one should not delay them.
  setPriority(-10)
} catch {
  // Only a privileged user may raise the priority. The delays are measured anyway.
}
process.once("message", (assignment: Assignment) => {
  void run(assignment).then((observations) => process.send!(observations, () => process.exit()))
})
