/** Scenarios with requests that wait for a change (`Prefer: wait`). */
import { connect } from "node:net"
import { setTimeout } from "node:timers/promises"
import type { Scenario } from "./comparisons.ts"
import { makeId, makeKey, thousand } from "./dataset.ts"
import { alternate, perSecond, ratios } from "./harness.ts"
import { quantile } from "./load.ts"
import { atLeast, atMost } from "./measurement.ts"
import { makeServiceStart, type ServerProcess } from "./processes.ts"
import { numbers, onePrompt, resolved } from "./requests.ts"

/** The key and the target of a request that waits. */
interface Wait {
  readonly key: string
  readonly target: string
}

/**
 * Connects one client for each wait. Each client reads its target, and after `startWaiting` repeatedly waits for a
 * change. Calls `onChange` for each change.
 */
const connectClients = async (
  { port }: ServerProcess,
  waits: ReadonlyArray<Wait>,
  onChange = (): void => {}
) => {
  const connectClient = async ({ key, target }: Wait) => {
    const socket = connect(port, "127.0.0.1").setEncoding("latin1")
    const send = (conditions: string): void => {
      socket.write(`GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n${conditions}\r\n`)
    }
    let received = ""
    let etag = ""
    let onResponse = (_status: string): void => {}
    socket.on("data", (text: unknown) => {
      received += text
      const [head, status] = /^HTTP\/1\.1 (\d+)[\s\S]*?\r\n\r\n/.exec(received) ?? []
      if (head === undefined || status === undefined) return
      const length = status === "304" ? 0 : Number(/^content-length: (\d+)/im.exec(head)![1])
      if (received.length < head.length + length) return
      received = ""
      etag = /^etag: (.*)\r$/im.exec(head)![1]!
      onResponse(status)
    })
    await new Promise<void>((resolve) => {
      onResponse = () => resolve()
      send("")
    })
    const wait = (): void => send(`If-None-Match: ${etag}\r\nPrefer: wait=50\r\n`)
    onResponse = (status) => {
      if (status === "200") onChange()
      wait()
    }
    return { wait, socket }
  }
  const clients = await Promise.all(
    waits.map(async (wait, index) => {
      // Limits the number of clients that connect at the same time.
      await setTimeout(index / 5)
      return connectClient(wait)
    })
  )
  return {
    startWaiting: async () => {
      for (const { wait } of clients) wait()
      await setTimeout(1_000)
    },
    close: () => {
      for (const { socket } of clients) socket.destroy()
    }
  }
}

/** Returns waits for the prompts 1, 2, 3 and so on. Every 200 waits share a key. */
const makeWaits = (count: number): ReadonlyArray<Wait> =>
  numbers(count).map((i) => ({
    key: makeKey(thousand, 1 + (i % (count / 200))),
    target: resolved(thousand, 1 + (i % thousand.prompts))
  }))

const idle: Scenario = {
  group: "waits",
  title: "5,000 requests that wait",
  workspaces: [thousand],
  measure: async (harness) => {
    const start = () => makeServiceStart(harness.dataset.url)
    const [server, other] = [await harness.start(await start()), await harness.start(await start())]
    const clients = await connectClients(server, makeWaits(5_000))
    await setTimeout(2_000)
    const before = await server.memory()
    await clients.startWaiting()
    await setTimeout(2_000)
    const after = await server.memory()
    const side = { streams: () => [onePrompt], warmUp: () => [onePrompt] }
    const rounds = await alternate(harness, { server, ...side }, { server: other, ...side })
    clients.close()
    await server.stop()
    await other.stop()
    return [
      {
        title: `Memory of ${idle.title}`,
        unit: "MiB more than 5,000 idle connections",
        goal: atMost(60, 30),
        samples: [after - before],
        detail: { "MiB before": before, "MiB after": after }
      },
      {
        title: `Resolved read, hot, beside ${idle.title}`,
        unit: "of the rate without them",
        goal: atLeast(0.95, 0.99),
        samples: ratios(rounds, perSecond(0))
      }
    ]
  }
}

const changes: Scenario = {
  group: "waits",
  title: "From a commit to the 200 of 1,000 clients",
  workspaces: [thousand],
  measure: async (harness) => {
    const { sql } = harness.dataset
    const server = await harness.start(await makeServiceStart(harness.dataset.url))
    const waits = numbers(1_000).map((i) => ({
      key: makeKey(thousand, 1 + (i % 100)),
      target: resolved(thousand, 1)
    }))
    let noticedAt: Array<number> = []
    const latencies: Array<number> = []
    const clients = await connectClients(server, waits, () => {
      noticedAt.push(performance.now())
    })
    await clients.startWaiting()
    const id = makeId(thousand, "prompt", 1)
    for (let edit = 1; edit <= harness.scale.rounds * 10; edit++) {
      await setTimeout(200)
      noticedAt = []
      await sql`update prompts set current_content = ${`Edit ${edit}`} where id = ${id}`
      const committedAt = performance.now()
      while (noticedAt.length < waits.length) await setTimeout(1)
      // A client can notice a change before this process knows of the commit.
      latencies.push(...noticedAt.map((at) => Math.max(0, at - committedAt)))
    }
    clients.close()
    await server.stop()
    return [
      {
        title: changes.title,
        unit: "ms p99",
        goal: atMost(100, 50),
        samples: [quantile(latencies, 0.99)],
        detail: { "ms p50": quantile(latencies, 0.5) }
      }
    ]
  }
}

export const waitScenarios: ReadonlyArray<Scenario> = [idle, changes]
