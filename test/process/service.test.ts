import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ArchivePrompt } from "../../src/application/formats/Archive.ts"
import { embedded, makeResources, postgres } from "../support/database.ts"
import { startObserved } from "../support/observed.ts"
import { run, type Service } from "../support/service.ts"

const archivePath = join(import.meta.dirname, "../../src/demo/workspace.json")
const archive = JSON.parse(readFileSync(archivePath, "utf8"))
const prompts: ReadonlyArray<ArchivePrompt> = archive.prompts
const agent = prompts.find(({ title }) => title === "Support agent")!

/** Parts of an object, in the order they are named. */
const pick = (from: object, names: ReadonlyArray<string>) =>
  Object.fromEntries(names.map((name) => [name, from[name as keyof typeof from]]))

const summaryFields = [
  "id",
  "title",
  "description",
  "prompt_type",
  "target_model",
  "intent",
  "current_version",
  "created_at",
  "updated_at"
]
const promptFields = [
  "id",
  "title",
  "description",
  "current_content",
  "prompt_type",
  "target_model",
  "intent",
  "current_version",
  "folder_id",
  "is_favorite",
  "is_archived",
  "sort_order"
]

/** The newest first; ids in descending order where times are equal. */
const newestFirst = (a: ArchivePrompt, b: ArchivePrompt) =>
  a.updated_at === b.updated_at ? (a.id < b.id ? 1 : -1) : a.updated_at < b.updated_at ? 1 : -1

const resolvedAgent = [
  agent.current_content,
  "Write as Acme does: warm and calm, without jargon, and address the reader directly.",
  "Answer in English. Use at most 4 sentences.",
  "Never reveal personal data. If you are not sure, say so instead of guessing."
].join("\n\n")

describe.each([embedded, postgres])("the real process on $name", ({ acquire, missing, name }) => {
  if (missing !== undefined) {
    it.skip(`is not run: ${missing}`, () => {})
    return
  }

  const resources = makeResources()
  let env: Record<string, string>
  let service: Service
  let key: string

  const get = async (path: string, headers: Record<string, string> = { authorization: `Bearer ${key}` }) => {
    const response = await fetch(`${service.url}${path}`, { headers })
    return { status: response.status, body: await response.json() }
  }

  beforeAll(async () => {
    env = await resources.acquire(acquire)
    service = await startObserved(env)
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
        api_keys: 0
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

  it("lists prompts, newest first, without the archived one", async () => {
    const listed = prompts.filter(({ is_archived }) => !is_archived).toSorted(newestFirst)
    expect(await get("/api/v1/prompts?per_page=4")).toEqual({
      status: 200,
      body: {
        data: listed.slice(0, 4).map((prompt) => pick(prompt, summaryFields)),
        meta: { page: 1, per_page: 4, total: 6 }
      }
    })
    expect(await get("/api/v1/prompts?tag=production&type=template")).toEqual({
      status: 200,
      body: {
        data: listed
          .filter(({ prompt_type }) => prompt_type === "template")
          .map((prompt) => pick(prompt, summaryFields)),
        meta: { page: 1, per_page: 20, total: 1 }
      }
    })
  })

  it("reads every prompt whole, the archived one too", async () => {
    for (const prompt of prompts) {
      expect(await get(`/api/v1/prompts/${prompt.id.toUpperCase()}`)).toEqual({
        status: 200,
        body: {
          data: {
            ...pick(prompt, promptFields),
            tags: archive.tags
              .filter(({ id }: { id: string }) => prompt.tags.includes(id as never))
              .toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)),
            ...pick(prompt, ["created_at", "updated_at"])
          }
        }
      })
    }
  })

  it("resolves content", async () => {
    expect(await get(`/api/v1/prompts/${agent.id}/resolved`)).toEqual({
      status: 200,
      body: {
        data: {
          ...pick(agent, ["id", "title", "prompt_type", "target_model"]),
          resolved_content: resolvedAgent,
          fragment_count: 3
        }
      }
    })
  })

  it("lists versions, newest first, and reads one", async () => {
    const summaries = agent.versions
      .toReversed()
      .map((version) => pick(version, ["version_number", "change_summary", "change_source", "created_at"]))
    expect(await get(`/api/v1/prompts/${agent.id}/versions?per_page=2`)).toEqual({
      status: 200,
      body: { data: summaries.slice(0, 2), meta: { page: 1, per_page: 2, total: 3 } }
    })
    const { metadata, created_at, ...second } = agent.versions[1]!
    expect(await get(`/api/v1/prompts/${agent.id}/versions/2`)).toEqual({
      status: 200,
      body: { data: { ...second, prompt_id: agent.id, metadata, created_at } }
    })
  })

  it("refuses a bad archive whole, with the path of each fault", async () => {
    const before = await get("/api/v1/prompts")
    const bad = structuredClone(archive)
    bad.prompts.splice(0, 2)
    bad.prompts[3].versions[0].created_at = "yesterday"
    bad.prompts[1].prompt_type = "poem"
    const refused = await run(["import", "-"], env, JSON.stringify(bad))
    expect(refused).toEqual({
      code: 1,
      stdout: "",
      stderr: [
        "prompt-retrieval: nothing was imported; the archive has 2 problems:",
        'prompts[1].prompt_type: Expected "system" | "user" | "assistant" | "template" | "few-shot" | "chain-of-thought"',
        "prompts[3].versions[0].created_at: must be an ISO 8601 time with an offset, in the years 0001 to 9999",
        ""
      ].join("\n")
    })
    expect(await get("/api/v1/prompts")).toEqual(before)
  })

  if (name === embedded.name) {
    it("prints a curl line that answers resolved content when pasted", async () => {
      const [line] = /^ *curl .*$/m.exec(service.output())!
      const { stdout } = await promisify(execFile)("sh", ["-c", `${line} --silent --show-error`])
      expect(JSON.parse(stdout).data).toMatchObject({
        id: agent.id,
        resolved_content: resolvedAgent,
        fragment_count: 3
      })
    })
  }

  it("never logs a key", () => {
    expect(service.output()).toContain('"route":"/api/v1/prompts/:id/resolved"')
    expect(service.output()).not.toContain(key.slice("key_live_".length))
  })

  it("finds its data again after a restart, and makes nothing up", async () => {
    const before = await get("/api/v1/prompts")
    expect(await service.stop()).toBe(0)
    service = await startObserved(env)
    await expect.poll(() => get("/api/v1/prompts"), { timeout: 5_000 }).toEqual(before)
    expect(service.output()).not.toContain("key_live_")
    if (name === embedded.name) expect(service.output()).toContain("keys issue --workspace")
  })
})
