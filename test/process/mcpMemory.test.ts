import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { archive, fragment, fragmentBinding, key, prompt, user, workspace } from "../support/archives.ts"
import { connectTo, makeResources, postgres } from "../support/database.ts"
import { call } from "../support/clients/mcp.ts"
import { type Service, startService } from "../support/service.ts"

const count = 10_000
const MiB = 1024

/** Returns the memory of a process in KiB. */
const readMemory = ({ process }: Service): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${process.pid}/status`, "utf8"))![1])

describe("a workspace of 10,000 prompts", () => {
  const resources = makeResources()
  const home = workspace()
  const owner = user()
  const { plaintext, stored } = key(home.id, owner)
  const tone = fragment(`Answer in a {{tone}} tone. ${"y".repeat(500)}`)
  let service: Service

  beforeAll(async () => {
    const env = await resources.acquire(postgres.acquire)
    const limits = { RATE_LIMIT_PER_KEY: "1000000", RATE_LIMIT_PER_PROCESS: "1000000" }
    service = await startService({ ...env, ...limits, MCP: "on" })
    const { importArchive } = await resources.acquire(connectTo(env))
    const prompts = Array.from({ length: count }, (_, n) =>
      prompt({
        title: `Title ${n % 5_000}`,
        current_content: `{{name}} ${"x".repeat(2_000)}`,
        fragments: [fragmentBinding(tone, 0)]
      })
    )
    await importArchive(
      archive({ workspace: home, users: [owner], api_keys: [stored], fragments: [tone], prompts })
    )
  })
  afterAll(async () => {
    await service?.stop()
    await resources.release()
  })

  const listAll = async (): Promise<ReadonlyArray<string>> => {
    const names: Array<string> = []
    for (let cursor: string | undefined; ; ) {
      const { body } = await call(service, plaintext, "prompts/list", cursor === undefined ? {} : { cursor })
      names.push(...body.result.prompts.map(({ name }: { readonly name: string }) => name))
      cursor = body.result.nextCursor
      if (cursor === undefined) return names
    }
  }

  it("is listed page by page, each prompt under another name, in bounded memory", async () => {
    await call(service, plaintext, "prompts/list")
    const before = readMemory(service)
    let most = before
    for (let round = 0; round < 2; round++) {
      const start = performance.now()
      const names = await listAll()
      most = Math.max(most, readMemory(service))
      console.log(`${Math.round(performance.now() - start)} ms, ${Math.round(readMemory(service) / MiB)} MiB`)
      expect([names.length, new Set(names).size]).toEqual([count, count])
    }
    expect((most - before) / MiB).toBeLessThan(120)
  })
})
