import { afterAll, beforeAll, expect, it } from "vitest"
import { fragment, prompt, sample, fragmentBinding } from "../support/archives.ts"
import { connectTo, makeResources } from "../support/database.ts"
import { startObservedService } from "../support/startObservedService.ts"
import { exchange, getHeader, rawRequest } from "../support/rawHttp.ts"
import type { Service } from "../support/service.ts"
import { authorize, endpointTargets, fastestBackend, makeTenant } from "./startApi.ts"

const home = sample()
/** Fragments of 1 MiB each exceed the 1 MiB that resolved content may have. */
const megabyte = fragment("x".repeat(1024 * 1024))
const large = prompt({
  fragments: Array.from({ length: 9 }, (_, position) => fragmentBinding(megabyte, position))
})
const homeArchive = {
  ...home.archive,
  fragments: [...home.archive.fragments, megabyte],
  prompts: [...home.archive.prompts, large]
}
const free = makeTenant({ tier: "free" })
const disputed = makeTenant({ billing_status: "disputed" })
const targets = endpointTargets(home.archive.prompts[0]!.id)
const perKey = 5

const resources = makeResources()
let service: Service
let withoutDatabase: Service
let sql: (text: string) => Promise<unknown>
beforeAll(async () => {
  const env = await resources.acquire(fastestBackend.acquire)
  service = await startObservedService({ ...env, RATE_LIMIT_PER_KEY: String(perKey) })
  // Nothing listens on port 9.
  const noDatabase = { DATABASE_URL: "postgres://postgres@127.0.0.1:9/none" }
  withoutDatabase = await startObservedService(noDatabase, "/healthz")
  const database = await resources.acquire(connectTo(env))
  sql = database.sql
  for (const archive of [homeArchive, free.archive, disputed.archive]) await database.importArchive(archive)
})
afterAll(async () => {
  await service?.stop()
  await withoutDatabase?.stop()
  await resources.release()
})

it("the search for leaked secrets covers the output of requests with every status of the contract", async () => {
  const active = authorize(home.keys.active.plaintext)
  const second = authorize(home.keys.second.plaintext)
  const send = (target: string, lines = [active], method = "GET", { port } = service) =>
    exchange(port, rawRequest(target, lines, method))
  const statuses = new Set<number>()
  const record = async (response: ReturnType<typeof send>) => statuses.add((await response).status)

  const etag = getHeader(await send(targets.get), "etag")
  await record(send(targets.get))
  await record(send(targets.get, [active, `If-None-Match: ${etag}`]))
  await record(send(`${targets.list}?page=0`, [second]))
  await record(send(targets.list, []))
  await record(send(targets.list, [authorize(disputed.key)]))
  await record(send(targets.list, [authorize(free.key)]))
  await record(send("/nowhere"))
  await record(send(targets.list, [active], "POST"))
  await record(send(targets.list, [active, "Expect: a-miracle"]))
  await record(send(targets.list, [`X: ${"a".repeat(17_000)}`]))
  await record(send(endpointTargets(large.id).getResolved, [second]))
  await sql("alter table prompts rename column title to gone")
  await record(send(targets.getResolved, [second])).finally(() =>
    sql("alter table prompts rename column gone to title")
  )
  await record(send(targets.list, [active], "GET", withoutDatabase))
  // Even if a minute ends meanwhile, one of these requests exceeds the limit.
  for (let i = 0; i <= 2 * perKey; i++) await record(send(targets.list))

  const expected = [200, 304, 400, 401, 402, 403, 404, 405, 417, 422, 429, 431, 500, 503]
  expect([...statuses].toSorted((a, b) => a - b)).toEqual(expected)
  const findLoggedStatuses = () => {
    const output = service.output() + withoutDatabase.output()
    const logged = Array.from(output.matchAll(/"status":(\d+)/g), ([, status]) => Number(status))
    return [...new Set(logged)].toSorted((a, b) => a - b)
  }
  await expect.poll(findLoggedStatuses).toEqual(expected)
})
