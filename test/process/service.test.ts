import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ArchivePrompt } from "../../src/application/formats/Archive.ts"
import { runCurl } from "../support/clients/curl.ts"
import { embedded, makeResources } from "../support/database.ts"
import { run, type Service } from "../support/service.ts"
import { startObservedService } from "../support/services/startObservedService.ts"

const archivePath = join(import.meta.dirname, "../../src/demo/workspace.json")
const archive = JSON.parse(readFileSync(archivePath, "utf8"))
const prompts: ReadonlyArray<ArchivePrompt> = archive.prompts
const agent = prompts.find(({ title }) => title === "Support agent")!

interface JsonBody {
  readonly data: unknown
  readonly meta?: unknown
}

const resolvedAgent = [
  agent.current_content,
  "Write as Acme does: warm and calm, without jargon, and address the reader directly.",
  "Answer in English. Use at most 4 sentences.",
  "Never reveal personal data. If you are not sure, say so instead of guessing."
].join("\n\n")

describe("a service on the embedded database with the demo workspace", () => {
  const resources = makeResources()
  let env: Record<string, string>
  let service: Service
  let key: string

  const get = async (path: string) => {
    const response = await fetch(`${service.url}${path}`, { headers: { authorization: `Bearer ${key}` } })
    return { status: response.status, body: (await response.json()) as JsonBody }
  }

  beforeAll(async () => {
    env = await resources.acquire(embedded.acquire)
    service = await startObservedService(env, "/readyz", ["--demo"])
    const imported = await run(["import", archivePath, "--json"], env)
    expect({ ...imported, stdout: JSON.parse(imported.stdout) }).toEqual({
      code: 0,
      stdout: {
        workspace_id: archive.workspace.id,
        prompts: 7,
        versions: 11,
        fragments: 3,
        folders: 2,
        tags: 3,
        users: 1,
        api_keys: 0,
        rows: { added: expect.any(Number), changed: 0, removed: 0 }
      },
      stderr: ""
    })
    const issued = await run(
      ["keys", "issue", "--workspace", archive.workspace.id, "--user", "ops@example.com", "--json"],
      env
    )
    expect(issued).toMatchObject({ code: 0, stderr: "" })
    key = JSON.parse(issued.stdout).key
  })

  afterAll(async () => {
    if (service !== undefined) expect(await service.stop()).toBe(0)
    await resources.release()
  })

  it("the curl command that the first start prints returns resolved content", async () => {
    const [line] = /^ *curl .*$/m.exec(service.output())!
    expect(((await runCurl(line!)) as JsonBody).data).toMatchObject({
      id: agent.id,
      resolved_content: resolvedAgent,
      fragment_count: 3
    })
  })

  it(`a service returns the same data after a restart and creates no second demo workspace`, async () => {
    const before = await get("/api/v1/prompts")
    expect(before.status).toBe(200)
    expect(await service.stop()).toBe(0)
    service = await startObservedService(env, "/readyz", ["--demo"])
    await expect.poll(() => get("/api/v1/prompts"), { timeout: 5_000 }).toEqual(before)
    await expect.poll(() => service.output(), { timeout: 20_000 }).toContain("keys issue --workspace")
    expect(service.output()).not.toContain("key_live_")
  })
})
