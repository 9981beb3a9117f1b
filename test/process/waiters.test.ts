import { expect, it } from "vitest"
import { makeTenant, prompt } from "../support/archives.ts"
import { read, sendWait } from "../support/clients/read.ts"
import { freePort } from "../support/ports.ts"
import { startService, unlimited } from "../support/service.ts"
import { readMetric } from "../support/services/metrics.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"

const tenant = makeTenant({ prompts: [prompt()] })
const { env, sql } = makeTestDatabase([tenant.archive])

/** On SIGUSR2, prints the size of the heap without garbage. */
const script = `import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
setFlagsFromString("--expose-gc")
const gc = runInNewContext("gc")
process.on("SIGUSR2", () => {
  gc()
  process._rawDebug("heap " + process.memoryUsage().heapUsed)
})`
const requests = 4_000
const concurrency = 50
/** A waiter, a timer or a listener that stays takes at least this much memory. */
const bytesPerRequest = 150

it("the heap of a service does not grow with the number of waiting requests that have ended", async () => {
  const metricsPort = await freePort()
  const service = await startService({
    ...env,
    METRICS_PORT: String(metricsPort),
    ...unlimited,
    LOG_LEVEL: "Warn",
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}`
  })
  const url = `${service.url}/api/v1/prompts/${tenant.archive.prompts[0]!.id}`
  const key = tenant.key.plaintext
  let edits = 0
  /** Sends reads that wait for an edit, and reads that share one read or are cached. */
  const sendAll = async () => {
    for (let sent = 0; sent < requests; sent += 4 * concurrency) {
      const readTitle = async () => JSON.parse((await read(url, key)).body).data.title
      if (edits > 0) await expect.poll(readTitle, { interval: 5 }).toBe(`Edit ${edits}`)
      const { etag } = (await read(url, key)).headers
      const replies = Array.from({ length: concurrency }, () => sendWait(url, key, etag).response)
      const held = "prompt_retrieval_http_requests_held"
      await expect.poll(() => readMetric(metricsPort, held), { interval: 5 }).toBe(concurrency)
      await sql("update prompts set title = $1", [`Edit ${++edits}`])
      for (const path of ["", "/resolved", "/versions"])
        replies.push(...Array.from({ length: concurrency }, () => read(url + path, key)))
      const statuses = new Set((await Promise.all(replies)).map(({ status }) => status))
      expect([...statuses]).toEqual([200])
    }
  }
  const measureHeap = async (): Promise<number> => {
    const { length } = service.output()
    service.process.kill("SIGUSR2")
    await expect.poll(() => service.output().slice(length)).toMatch(/heap \d+/)
    return Number(/heap (\d+)/.exec(service.output().slice(length))![1])
  }
  const heaps = []
  for (let round = 0; round < 5; round++) {
    await sendAll()
    heaps.push(await measureHeap())
  }
  const growth = Math.min(...heaps.slice(3)) - Math.min(...heaps.slice(1, 3))
  expect(growth / requests).toBeLessThan(bytesPerRequest)
  expect(await service.stop()).toBe(0)
})
