import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { NotFoundError, PromptClient } from "../../client/src/index.ts"
import { createPromptApi, type PromptApi, PromptApiError } from "../../src/index.ts"
import { instant, makeTenant, prompt, version } from "../support/archives.ts"
import { call } from "../support/clients/mcp.ts"
import { runInProcess } from "../support/services/commandLine.ts"
import { runService, type Service, startService, unlimited } from "../support/service.ts"
import { makeAcquire, makeTestDatabase } from "../support/testDatabase.ts"

const makePrompt = (title: string, overrides: Partial<Parameters<typeof prompt>[0]> = {}) =>
  prompt({ title, current_content: title, versions: [version(1)], ...overrides })

const original = makePrompt("Support agent", { created_at: instant("2026-01-01") })
const copy = makePrompt("Support Agent", { created_at: instant("2026-01-02") })
const renamed = makePrompt("Old title")
const archived = makePrompt("Archived", { is_archived: true })
const japanese = makePrompt("要約")
const foreign = makePrompt("Foreign")
const home = makeTenant({ prompts: [original, copy, renamed, archived, japanese] })
const stranger = makeTenant({ prompts: [foreign] })

const toDigits = (id: string): string => id.replaceAll("-", "")

/** Each name, and the title of the prompt that has it; undefined if no prompt of the workspace has the name. */
const names: ReadonlyArray<readonly [name: string, title: string | undefined]> = [
  ["support-agent", original.title],
  [`support-agent-${copy.id.slice(0, 8)}`, copy.title],
  [`support-agent-${toDigits(original.id)}`, original.title],
  ["new-title", "New title"],
  ["old-title", undefined],
  ["archived", undefined],
  [`archived-${toDigits(archived.id)}`, undefined],
  ["prompt", japanese.title],
  ["foreign", undefined],
  [`foreign-${toDigits(foreign.id)}`, undefined],
  ["Support-agent", undefined],
  ["no-such-prompt", undefined]
]

describe("a name denotes the same prompt in every interface", { timeout: 60_000 }, () => {
  const { env, sql } = makeTestDatabase([home.archive, stranger.archive])
  const acquire = makeAcquire()
  const key = home.key.plaintext
  const workspaceId = home.archive.workspace.id
  let service: Service
  let api: PromptApi

  beforeAll(async () => {
    service = await acquire(runService(() => startService({ ...env, ...unlimited, MCP: "on" })))
    api = await createPromptApi({ databaseUrl: env.DATABASE_URL })
    await fetchPrompt("old-title/resolved")
    await sql("update prompts set title = 'New title', current_content = 'New title' where id = $1", [
      renamed.id
    ])
    await vi.waitUntil(async () => (await fetchPrompt("old-title/resolved")).status === 404)
  })
  afterAll(() => api?.close())

  const fetchPrompt = async (path: string) => {
    const response = await fetch(`${service.url}/api/v1/prompts/${path}`, {
      headers: { authorization: `Bearer ${key}` }
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  it.each(names)("over HTTP, the four paths with the name %s return the prompt %s", async (name, title) => {
    for (const suffix of ["", "/resolved", "/versions", "/versions/1"]) {
      const byName = await fetchPrompt(name + suffix)
      if (title === undefined) {
        const message = suffix === "/versions/1" ? "Version not found" : "Prompt not found"
        const error = { code: "NOT_FOUND", message }
        expect(byName).toMatchObject({ status: 404, text: JSON.stringify({ error }) })
        continue
      }
      const { id, title: found } = JSON.parse((await fetchPrompt(name)).text).data
      expect(found).toBe(title)
      const byId = await fetchPrompt(id + suffix)
      expect({ status: byName.status, text: byName.text }).toEqual({ status: 200, text: byId.text })
      for (const header of ["etag", "prompt-version", "cache-control", "vary"])
        expect(byName.headers.get(header)).toBe(byId.headers.get(header))
    }
  })

  it.each(names)(
    "the client, createPromptApi, the command prompts get and MCP read %s as the prompt %s",
    async (name, title) => {
      const client = new PromptClient({ apiKey: key, baseUrl: service.url })
      const reads = await Promise.allSettled([
        client.prompts.getResolved(name),
        api.prompts.getResolved({ workspaceId, tier: "solo" }, name)
      ])
      const command = await runInProcess(["prompts", "get", name, "--workspace", workspaceId, "--json"], env)
      const { body } = await call(service, key, "prompts/get", { name })
      if (title === undefined) {
        expect(reads).toEqual([
          { status: "rejected", reason: expect.any(NotFoundError) },
          { status: "rejected", reason: expect.any(PromptApiError) }
        ])
        expect(command).toMatchObject({ code: 1, stderr: expect.stringContaining("has no prompt") })
        expect(body.error).toMatchObject({ code: -32602 })
      } else {
        for (const read of reads) expect(read).toMatchObject({ value: { data: { title } } })
        expect(JSON.parse(command.stdout).title).toBe(title)
        expect(body.result.messages[0].content.text).toBe(title)
      }
    }
  )
})
