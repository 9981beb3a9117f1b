/** Scenarios with live prompts of the TypeScript client (`client.live`). */
import { hash } from "node:crypto"
import { loadavg } from "node:os"
import { setTimeout } from "node:timers/promises"
import { PromptClient } from "../client/src/index.ts"
import type { Scenario } from "./comparisons.ts"
import { makeId, makeKey, thousand } from "./dataset.ts"
import { quantile } from "./load.ts"
import { atMost, type Measurement } from "./measurement.ts"
import { makeServiceStart } from "./processes.ts"
import { numbers } from "./requests.ts"

/** Each application has its own key and its own two prompts, and runs as several clients. */
const [applications, clientsPerApplication] = [100, 10]
const clientCount = applications * clientsPerApplication
/** The pause between changes, in milliseconds. After a change, the service checks the requests of all applications. */
const pauseMs = 250
/** How soon every client must notice a change, in milliseconds. A client that does not wait reads every 30 s. */
const timeoutMs = 60_000

/** Returns the numbers of an application's prompts. Only these two prompts use the fragment `5 * application + 4`. */
const listPrompts = (application: number) => [5 * application + 1, 5 * application + 2] as const

/**
 * Connects all clients. Calls `onText` after each change, with the text in the memory of a client. Calls `onRejection`
 * when a client gets its first 401; the client then closes its live prompts.
 */
const connectClients = async (port: number, onText: (text: string) => void, onRejection: () => void) => {
  let unheld = 0
  const connectClient = async (application: number) => {
    const client = new PromptClient({
      apiKey: makeKey(thousand, 1 + application),
      baseUrl: `http://127.0.0.1:${port}`,
      fetch: async (url, init) => {
        const response = await fetch(url, init)
        if (response.status === 304 && !response.headers.has("preference-applied")) unheld++
        if (response.status === 401) {
          onRejection()
          live.close()
        }
        return response
      }
    })
    const onChange = async (prompt: string) =>
      onText((await client.prompts.getResolved(prompt)).data.resolved_content)
    const names = listPrompts(application).map((number) => `prompt-${number}`)
    const live = await client.live(names, { onChange })
    return live
  }
  const clients = await Promise.all(
    numbers(clientCount).map(async (index) => {
      // Limits the number of clients that connect at the same time.
      await setTimeout(index * 2)
      return connectClient(index % applications)
    })
  )
  // By the end of this pause, all clients wait for a change.
  await setTimeout(2_000)
  return {
    /** Returns how many waits the service ended early with a 304. The client pauses after such a 304. */
    countUnheld: () => unheld,
    close: () => {
      for (const client of clients) client.close()
    }
  }
}

const live: Scenario = {
  group: "live",
  title: "From a commit to the memory of 1,000 live clients",
  workspaces: [thousand],
  measure: async (harness) => {
    const { sql } = harness.dataset
    const { port, stop, cpuTime } = await harness.start(await makeServiceStart(harness.dataset.url))
    let marker = ""
    let noticedAt: Array<number> = []
    const notice = () => noticedAt.push(performance.now())
    const clients = await connectClients(port, (text) => text.includes(marker) && notice(), notice)

    /** Makes a change that `count` clients notice. Returns how long each client took, in milliseconds. */
    const measureChange = async (count: number, change: () => PromiseLike<unknown>) => {
      await setTimeout(pauseMs)
      noticedAt = []
      await change()
      const committedAt = performance.now()
      while (noticedAt.length < count) {
        if (performance.now() - committedAt > timeoutMs) {
          // The requests of the clients would keep this process running.
          clients.close()
          throw new Error(
            `${noticedAt.length} of ${count} clients noticed a change; ${clients.countUnheld()} requests were not held`
          )
        }
        await setTimeout(1)
      }
      // A client can notice a change before this process knows of the commit.
      return noticedAt.map((at) => Math.max(0, at - committedAt))
    }
    const summarize = (title: string, latencies: ReadonlyArray<number>): Measurement => ({
      title,
      unit: "ms p99",
      goal: atMost(100, 50),
      samples: [quantile(latencies, 0.99)],
      detail: {
        "ms p50": quantile(latencies, 0.5),
        "ms max": Math.max(...latencies),
        samples: latencies.length,
        "not held": clients.countUnheld(),
        "load average": loadavg()[0]!
      }
    })

    const editCount = harness.scale.rounds * 100
    const before = { service: cpuTime(), clients: process.cpuUsage() }
    const edits: Array<number> = []
    for (let edit = 0; edit < editCount; edit++) {
      const application = Math.floor(Math.random() * applications)
      marker = `Edit ${edit}.`
      const isPrompt = edit % 2 === 0
      const id = isPrompt
        ? makeId(thousand, "prompt", listPrompts(application)[0])
        : makeId(thousand, "fragment", 5 * application + 4)
      edits.push(
        ...(await measureChange((isPrompt ? 1 : 2) * clientsPerApplication, () =>
          isPrompt
            ? sql`update prompts set current_content = ${marker} where id = ${id}`
            : sql`update fragments set content = ${marker} where id = ${id}`
        ))
      )
    }
    const { user, system } = process.cpuUsage(before.clients)
    const edited = summarize(live.title, edits)
    const cpuTimes = {
      "service CPU ms per edit": ((cpuTime() - before.service) * 1_000) / editCount,
      "clients CPU ms per edit": (user + system) / 1_000 / editCount
    }

    const rejections: Array<number> = []
    for (const application of numbers(harness.scale.rounds * 10)) {
      const keyHash = hash("sha256", makeKey(thousand, application), "buffer")
      rejections.push(
        ...(await measureChange(
          clientsPerApplication,
          () => sql`update api_keys set revoked_at = now() where key_hash = ${keyHash}`
        ))
      )
    }
    const rejected = summarize("From a revocation to the 401 of a live client", rejections)
    clients.close()
    await stop()
    // Makes the keys valid again, because other scenarios use the keys.
    await sql`update api_keys set revoked_at = null`
    return [{ ...edited, detail: { ...edited.detail, ...cpuTimes } }, rejected]
  }
}

export const liveScenarios: ReadonlyArray<Scenario> = [live]
