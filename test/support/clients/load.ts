import { Agent } from "node:http"
import { setTimeout } from "node:timers/promises"
import { type Reply, read } from "./read.ts"

interface LoadRequest {
  readonly url: string
  /** The plaintext of the key. */
  readonly key: string
  readonly onReply?: ((reply: Reply) => void) | undefined
}

interface LoadOptions {
  /** Returns a request. `n` counts the requests of all clients from 0. */
  readonly next: (n: number) => LoadRequest
  readonly clients: number
  /** How long a client waits between two requests. */
  readonly pauseMs: number
}

/** A load that runs until a call of `stop`. */
export type Load = ReturnType<typeof startLoad>

/** Starts clients. Each client has one connection and sends one request after another. */
export const startLoad = ({ next, clients, pauseMs }: LoadOptions) => {
  const replies: Array<Reply> = []
  let running = true
  let started = 0
  const client = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (running) {
      const { url, key, onReply } = next(started++)
      const reply = await read(url, key, {}, agent)
      onReply?.(reply)
      // Discards the bodies, because thousands of bodies would fill the memory of the test.
      replies.push({ ...reply, body: "" })
      await setTimeout(pauseMs)
    }
    agent.destroy()
  }
  const clientsDone = Promise.all(Array.from({ length: clients }, client))
  return {
    /** Returns how many requests have ended so far. */
    count: (): number => replies.length,
    /** Stops the clients after their current requests, and returns all replies without their bodies. */
    stop: async (): Promise<ReadonlyArray<Reply>> => {
      running = false
      await clientsDone
      return replies
    }
  }
}
