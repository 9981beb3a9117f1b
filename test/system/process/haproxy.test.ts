import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { startLoad } from "../../support/clients/load.ts"
import { read, sendWait, summarizeWait } from "../../support/clients/read.ts"
import { balanceInstances } from "../../support/database/failover.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { type Service, startService, unlimited } from "../../support/services/startService.ts"

const deploy = join(import.meta.dirname, "../../../deploy")

it("deploy/compose/haproxy.cfg has the same rules for requests as deploy/haproxy.cfg", () => {
  const readRules = (file: string) =>
    readFileSync(join(deploy, file), "utf8").match(/^ *(acl|http-request) .*$/gm) ?? []
  const rules = readRules("haproxy.cfg")
  expect(rules.length).toBeGreaterThan(1)
  expect(readRules("compose/haproxy.cfg")).toEqual(rules)
})

describe("two instances behind HAProxy", () => {
  const { archive, keys } = sample()
  const database = makeTestDatabase([archive])
  const env = { ...database.env, ...unlimited, SHUTDOWN_GRACE: "3 seconds" }
  let services: [Service, Service]
  let url: string

  beforeAll(async () => {
    services = await Promise.all([startService(env), startService(env)])
    url = (await database.acquire(balanceInstances(services))).url
  })
  afterAll(() => Promise.all(services.map((service) => service.stop())))

  it("HAProxy forwards only /api/v1 and /mcp", async () => {
    const read = async (path: string) => {
      const response = await fetch(`${url}${path}`)
      return [response.status, await response.text(), response.headers.has("x-request-id")]
    }
    const body = '{"error":{"code":"NOT_FOUND","message":"Route not found"}}'
    for (const path of ["/", "/docs", "/readyz", "/api/v10", "/mcp/", "/api/v1"])
      expect(await read(path), path).toEqual([404, body, false])
    for (const [path, status] of [
      ["/api/v1/prompts?page=1", 401],
      ["/api/v1/unknown", 404],
      ["/mcp?x", 404]
    ] as const)
      expect(await read(path), path).toEqual([status, expect.any(String), true])
  })

  it("HAProxy forwards a request that waits for a change", async () => {
    const request = [`${url}/api/v1/resolved`, keys.active.plaintext] as const
    const { etag } = (await read(...request)).headers
    const wait = async (seconds: number) => summarizeWait(await sendWait(...request, etag, seconds).response)
    await expect.poll(() => wait(1)).toEqual({ status: 304, applied: "wait=1", caching: "no-store" })
    await database.sql("update prompts set current_content = 'edited'")
    expect(await wait(50)).toMatchObject({ status: 200 })
  })

  it("two instances behind HAProxy stop and start one after another under load without a failed request", async () => {
    const prompt = archive.prompts[0]!.id
    const paths = ["", `/${prompt}/resolved`, `/${prompt}/versions/1`]
    const load = startLoad({
      next: (n) => ({
        url: `${url}/api/v1/prompts${paths[n % paths.length]!}`,
        key: keys.active.plaintext
      }),
      clients: 8,
      pauseMs: 1
    })
    const waitForRequests = () => {
      const target = load.count() + 300
      return expect.poll(() => load.count(), { interval: 20 }).toBeGreaterThan(target)
    }
    await waitForRequests()
    const codes: Array<number | null> = []
    for (const index of [0, 1] as const) {
      codes.push(await services[index].stop())
      await waitForRequests()
      services[index] = await startService({ ...env, PORT: String(services[index].port) })
      // HAProxy checks each instance once per second, so HAProxy uses the new instance after this pause.
      await setTimeout(1_500)
      await waitForRequests()
    }
    const statuses = new Set((await load.stop()).map(({ status }) => status))
    expect({ codes, statuses }).toEqual({ codes: [0, 0], statuses: new Set([200]) })
    // Both instances must have served requests.
    for (const service of services) expect(service.output()).toContain('"route":"/api/v1/prompts"')
  }, 60_000)
})
