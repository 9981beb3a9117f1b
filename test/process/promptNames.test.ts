import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { NotFoundError, PromptClient } from "../../client/src/index.ts"
import { createPromptApi, type PromptApi, PromptApiError } from "../../src/index.ts"
import { instant, makeTenant, prompt, version } from "../support/archives.ts"
import { call } from "../support/clients/mcp.ts"
import { send } from "../support/clients/requests.ts"
import { runInProcess } from "../support/services/commandLine.ts"
import { runService, type Service, startService } from "../support/service.ts"
import { makeAcquire, makeTestDatabase } from "../support/testDatabase.ts"

const makePrompt = (title: string, day: string) =>
  prompt({ title, current_content: `Content of ${title}`, created_at: instant(day), versions: [version(1)] })

const renamed = makePrompt("Old title", "2026-01-01")
const copy = makePrompt("New title!", "2026-01-02")
const { archive, key } = makeTenant({ prompts: [renamed, copy] })
const { env, sql } = makeTestDatabase([archive])
const acquire = makeAcquire()
let service: Service
let api: PromptApi
beforeAll(async () => {
  service = await acquire(runService(() => startService({ ...env, MCP: "on" })))
  api = await createPromptApi({ databaseUrl: env.DATABASE_URL })
  const readStatuses = async () => (await sendAll("old-title")).map(({ status }) => status)
  expect(await readStatuses()).toEqual([200, 200, 200, 200])
  await sql("update prompts set title = 'New title' where id = $1", [renamed.id])
  await vi.waitFor(async () => expect(await readStatuses()).toEqual([404, 404, 404, 404]))
})
afterAll(() => api?.close())

const sendAll = (reference: string) =>
  Promise.all(
    ["", "/resolved", "/versions", "/versions/1"].map((end) =>
      send(service, `/api/v1/prompts/${reference}${end}`, `Bearer ${key.plaintext}`)
    )
  )

it.each([
  ["new-title", renamed],
  [`new-title-${copy.id.slice(0, 8)}`, copy],
  ["old-title", undefined]
])(
  "after a change of a title, the HTTP API, the client, createPromptApi, prompts get and MCP find the same prompt by %s",
  async (name, prompt) => {
    const client = new PromptClient({ apiKey: key.plaintext, baseUrl: service.url })
    const workspaceId = archive.workspace.id
    const reads = await Promise.allSettled([
      client.prompts.getResolved(name),
      api.prompts.getResolved({ workspaceId, tier: "solo" }, name)
    ])
    const command = await runInProcess(["prompts", "get", name, "--workspace", workspaceId, "--json"], env)
    const { body } = await call(service, key.plaintext, "prompts/get", { name })
    const responses = await sendAll(name)
    if (prompt === undefined) {
      expect(responses).toEqual(Array(4).fill(expect.objectContaining({ status: 404, code: "NOT_FOUND" })))
      expect(reads).toEqual([
        { status: "rejected", reason: expect.any(NotFoundError) },
        { status: "rejected", reason: expect.any(PromptApiError) }
      ])
      expect(command).toMatchObject({ code: 1, stderr: expect.stringContaining("has no prompt") })
      expect(body.error).toMatchObject({ code: -32602 })
    } else {
      expect(responses).toEqual(await sendAll(prompt.id))
      expect(responses).toEqual(Array(4).fill(expect.objectContaining({ status: 200 })))
      for (const read of reads) expect(read).toMatchObject({ value: { data: { id: prompt.id } } })
      expect(JSON.parse(command.stdout).id).toBe(prompt.id)
      expect(body.result.messages[0].content.text).toBe(prompt.current_content)
    }
  }
)
