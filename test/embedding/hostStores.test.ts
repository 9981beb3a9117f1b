import { setTimeout } from "node:timers/promises"
import { it as effectIt } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import {
  createPromptApi,
  type HostLogFields,
  type HostKeyStore,
  type HostPromptRepo,
  type PromptApi,
  type StoreChanges,
  StoreUnavailableError
} from "../../src/index.ts"
import { archive, fragment, newId, prompt, sample, fragmentBinding } from "../support/archives.ts"
import { connectTo, makeResources, postgres } from "../support/database.ts"
import { makeHostStores } from "../support/hostStores.ts"
import { run } from "../support/service.ts"

const tenant = sample()
const [greeting] = tenant.archive.prompts
const key = tenant.keys.active.plaintext
const path = `/api/v1/prompts/${greeting!.id}`

/** The sample workspace after an edit of its first prompt. */
const renamed = (title: string) => ({
  ...tenant.archive,
  prompts: tenant.archive.prompts.map((one) => (one === greeting ? { ...one, title } : one))
})

const request = (target: string, token: string | undefined = key) =>
  new Request(`http://host.example${target}`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` }
  })

const readTitle = async (api: PromptApi, target = path): Promise<string> => {
  const response = await api.handler(request(target))
  expect(response.status).toBe(200)
  return JSON.parse(await response.text()).data.title
}

/** Collects the changes objects that an API passes to `watch`. */
const makeWatch = () => {
  const watching = new Set<StoreChanges>()
  return {
    watching,
    watch: (changes: StoreChanges) => {
      watching.add(changes)
      return () => void watching.delete(changes)
    },
    changed: (workspaceId?: string) => {
      for (const changes of watching) changes.changed(workspaceId)
    },
    setLive: (isLive: boolean) => {
      for (const changes of watching) changes.setLive(isLive)
    }
  }
}

/** Edits, reads, and what happens to the reports of the two stores. Edits and reads are frequent. */
const steps = Arbitrary.array(
  Arbitrary.schema(
    Schema.Literals([
      "edit",
      "edit ",
      "read",
      "read ",
      "read  ",
      "lose",
      "resume",
      "lose keys",
      "resume keys"
    ])
  ),
  { minLength: 20, maxLength: 60 }
)

const makeLogger = () => {
  const lines: Array<readonly [level: string, message: string, fields: HostLogFields]> = []
  const write = (level: string) => (message: string, fields: HostLogFields) =>
    void lines.push([level, message, fields])
  return { lines, logger: { warn: write("warn"), error: write("error") } }
}

describe("createPromptApi over the stores of a host, without a database", () => {
  const unlimited = { perKey: 1_000_000, perProcess: 1_000_000 }

  /** Creates an API over stores that hold the sample workspace and count their calls. */
  const makeApi = async (
    overrides: Partial<HostPromptRepo> = {},
    keyOverrides: Partial<HostKeyStore> = {}
  ) => {
    const stores = await makeHostStores()
    await stores.importArchive(tenant.archive)
    const get = vi.fn(stores.promptRepo.get)
    const find = vi.fn(stores.keyStore.find)
    const { logger, lines } = makeLogger()
    const api = await createPromptApi({
      promptRepo: { ...stores.promptRepo, get, ...overrides },
      keyStore: { ...stores.keyStore, find, ...keyOverrides },
      rateLimits: unlimited,
      logger
    })
    return { api, get, find, lines, importArchive: stores.importArchive }
  }

  it("serves every endpoint and the operational paths", async () => {
    const { api, lines } = await makeApi()
    for (const target of [
      "/api/v1/prompts?tag=production",
      path,
      `${path}/resolved`,
      `${path}/versions`,
      `${path}/versions/2`,
      "/healthz",
      "/readyz",
      "/openapi.json"
    ]) {
      const response = await api.handler(request(target))
      expect([target, response.status]).toEqual([target, 200])
      expect(await response.text()).not.toBe("")
    }
    const caller = { workspaceId: tenant.archive.workspace.id, tier: "team" }
    expect((await api.prompts.getResolved(caller, greeting!.id)).data.fragment_count).toBe(3)
    await api.close()
    expect(lines).toEqual([])
  })

  it("responds to keys in every state, and to what does not exist, as the service does", async () => {
    const { api } = await makeApi()
    const readError = async (target: string, token: string | undefined) => {
      const response = await api.handler(request(target, token))
      return [response.status, JSON.parse(await response.text()).error.message]
    }
    const { keys } = tenant
    expect(await readError(path, `key_live_${"0".repeat(64)}`)).toEqual([401, "Invalid API key"])
    expect(await readError(path, keys.revoked.plaintext)).toEqual([401, "API key has been revoked"])
    expect(await readError(path, keys.ownerMustReset.plaintext)).toEqual([
      401,
      "API key owner must reset password"
    ])
    expect(await readError(path, keys.legacy.plaintext)).toEqual([
      401,
      "API key has no organization assigned"
    ])
    expect(await readError(`/api/v1/prompts/${newId()}`, key)).toEqual([404, "Prompt not found"])
    expect(await readError(`/api/v1/prompts/${newId()}/resolved`, key)).toEqual([404, "Prompt not found"])
    expect(await readError(`/api/v1/prompts/${newId()}/versions`, key)).toEqual([404, "Prompt not found"])
    expect(await readError(`${path}/versions/99`, key)).toEqual([404, "Version not found"])
    await api.close()
  })

  it("rejects a key from its expiry on, even where its response is cached", async () => {
    const [prompts, keys] = [makeWatch(), makeWatch()]
    const expiry = Date.now() + 1_500
    const find = vi.fn<HostKeyStore["find"]>(async () => ({
      id: tenant.keys.active.stored.id,
      expires_at: new Date(expiry).toISOString(),
      workspace: { id: tenant.archive.workspace.id, tier: "solo" }
    }))
    const { api } = await makeApi({ watch: prompts.watch }, { watch: keys.watch, find })
    prompts.setLive(true)
    keys.setLive(true)
    await readTitle(api)
    await readTitle(api)
    expect(find).toHaveBeenCalledTimes(1)
    await setTimeout(Math.max(0, expiry - Date.now()) + 5)
    expect((await api.handler(request(path))).status).toBe(401)
    await api.close()
  })

  it("marks the key of each successful request as used, and logs an error of markUsed", async () => {
    const before = Date.now()
    const markUsed = vi.fn(async (_id: string, _usedAt: Date) => {})
    const { api } = await makeApi({}, { markUsed })
    await readTitle(api)
    await api.handler(request(path, tenant.keys.revoked.plaintext))
    expect(markUsed.mock.calls.map(([id]) => id)).toEqual([tenant.keys.active.stored.id])
    expect(markUsed.mock.calls[0]![1].getTime()).toBeGreaterThanOrEqual(before)
    await api.close()

    const failing = await makeApi({}, { markUsed: () => Promise.reject(new Error("disk full")) })
    await readTitle(failing.api)
    await expect
      .poll(() => failing.lines)
      .toEqual([["warn", "keyStore.markUsed failed", { err: expect.stringContaining("disk full") }]])
    await failing.api.close()
  })

  it("never caches a response of stores without watch", async () => {
    const { api, get, find, importArchive } = await makeApi()
    for (const title of ["One", "Two", "Three"]) {
      await importArchive(renamed(title))
      expect(await readTitle(api)).toBe(title)
    }
    expect([get.mock.calls.length, find.mock.calls.length]).toEqual([3, 3])
    await api.close()
  })

  it("never caches a response if only one of the stores reports changes", async () => {
    const { watch, setLive } = makeWatch()
    const { api, get } = await makeApi({ watch })
    setLive(true)
    await readTitle(api)
    await readTitle(api)
    expect(get).toHaveBeenCalledTimes(2)
    await api.close()
  })

  it("caches responses while both stores report changes, until a change of their workspace", async () => {
    const [prompts, keys] = [makeWatch(), makeWatch()]
    const { api, get, find, importArchive } = await makeApi({ watch: prompts.watch }, { watch: keys.watch })
    const countCalls = () => [get.mock.calls.length, find.mock.calls.length]
    await readTitle(api)
    await readTitle(api)
    expect(countCalls()).toEqual([2, 2])

    prompts.setLive(true)
    keys.setLive(true)
    await readTitle(api)
    await readTitle(api)
    expect(countCalls()).toEqual([3, 3])

    await importArchive(renamed("Edited"))
    prompts.changed(newId())
    expect(await readTitle(api)).toBe(greeting!.title)
    prompts.changed(tenant.archive.workspace.id.toUpperCase())
    expect(await readTitle(api)).toBe("Edited")
    expect(countCalls()).toEqual([4, 4])

    await importArchive(renamed("Edited again"))
    keys.changed()
    expect(await readTitle(api)).toBe("Edited again")

    prompts.setLive(false)
    await importArchive(renamed("Edited unnoticed"))
    expect(await readTitle(api)).toBe("Edited unnoticed")
    await importArchive(renamed("Edited before the reports resumed"))
    prompts.setLive(true)
    expect(await readTitle(api)).toBe("Edited before the reports resumed")
    await api.close()
    expect([prompts.watching.size, keys.watching.size]).toEqual([0, 0])
  })

  effectIt.effect.prop(
    "every response has the latest edit, for any order of edits, lost reports and reads",
    { steps },
    ({ steps }) =>
      Effect.promise(async () => {
        const [prompts, keys] = [makeWatch(), makeWatch()]
        const { api, importArchive } = await makeApi({ watch: prompts.watch }, { watch: keys.watch })
        let [title, isLive] = [greeting!.title, false]
        for (const [index, padded] of steps.entries()) {
          const step = padded.trim()
          if (step === "edit") {
            title = `Edit ${index}`
            await importArchive(renamed(title))
            if (isLive) prompts.changed(tenant.archive.workspace.id)
          } else if (step === "read") {
            expect(await readTitle(api)).toBe(title)
          } else if (step === "lose" || step === "resume") {
            isLive = step === "resume"
            prompts.setLive(isLive)
          } else {
            keys.setLive(step === "resume keys")
          }
        }
        expect(await readTitle(api)).toBe(title)
        await api.close()
      }),
    { arbitrary: { runs: 50, maxShrinks: 100 } }
  )

  it("does not cache a response that was read while its workspace changed", async () => {
    const [prompts, keys] = [makeWatch(), makeWatch()]
    const stores = await makeHostStores()
    await stores.importArchive(tenant.archive)
    let onRead = async () => {}
    const { api } = await makeApi(
      {
        watch: prompts.watch,
        get: async (workspace, id) => {
          const found = await stores.promptRepo.get(workspace, id)
          await onRead()
          return found
        }
      },
      { watch: keys.watch }
    )
    prompts.setLive(true)
    keys.setLive(true)
    onRead = async () => {
      await stores.importArchive(renamed("Newer"))
      prompts.changed(tenant.archive.workspace.id)
    }
    expect(await readTitle(api)).toBe(greeting!.title)
    onRead = async () => {}
    expect(await readTitle(api)).toBe("Newer")
    await api.close()
  })

  it("returns 503 while a store is unavailable, and logs once when that begins", async () => {
    let isAvailable = false
    const stores = await makeHostStores()
    await stores.importArchive(tenant.archive)
    const { api, lines } = await makeApi({
      get: (workspace, id) => {
        if (!isAvailable) throw new StoreUnavailableError("connection lost")
        return stores.promptRepo.get(workspace, id)
      }
    })
    const readStatus = async () => (await api.handler(request(path))).status
    expect([await readStatus(), await readStatus()]).toEqual([503, 503])
    isAvailable = true
    expect(await readStatus()).toBe(200)
    isAvailable = false
    expect(await readStatus()).toBe(503)
    const line = ["warn", "promptRepo unavailable; its requests get 503: connection lost", {}]
    expect(lines).toEqual([line, line])
    await api.close()
  })

  it("returns 500 and logs the reason, without the data, if a store fails or returns invalid data", async () => {
    const secret = "s3cret text of a prompt"
    for (const [get, reason] of [
      [() => Promise.reject(new Error("no such table")), "no such table"],
      [
        async () => ({
          ...(await stores.promptRepo.get(tenant.archive.workspace.id, greeting!.id))!,
          title: [secret]
        }),
        "promptRepo.get returned invalid data: title"
      ],
      [async () => secret, "promptRepo.get returned invalid data: the value"]
    ] as ReadonlyArray<readonly [HostPromptRepo["get"], string]>) {
      const { api, lines } = await makeApi({ get })
      const response = await api.handler(request(path))
      expect([response.status, JSON.parse(await response.text()).error.code]).toEqual([500, "INTERNAL_ERROR"])
      expect(lines).toEqual([
        ["error", "Request failed", { err: expect.stringContaining(reason), request_id: expect.any(String) }]
      ])
      expect(JSON.stringify(lines)).not.toContain(secret)
      await api.close()
    }
  })
  let stores: Awaited<ReturnType<typeof makeHostStores>>
  beforeAll(async () => {
    stores = await makeHostStores()
    await stores.importArchive(tenant.archive)
  })

  it("limits the size of a resolved prompt", async () => {
    const large = fragment("x".repeat(9 * 2 ** 20))
    const one = prompt({ fragments: [fragmentBinding(large, 1)] })
    const { api, lines, importArchive } = await makeApi()
    await importArchive(archive({ ...tenant.archive, fragments: [large], prompts: [one] }))
    const response = await api.handler(request(`/api/v1/prompts/${one.id}/resolved`))
    expect([response.ok, lines]).toEqual([
      false,
      [["warn", "Resolved content is too large", { prompt_id: one.id }]]
    ])
    await api.close()
  })
})

describe("createPromptApi over one store of a host and a database", () => {
  const resources = makeResources()
  let databaseUrl: string
  let database: Awaited<ReturnType<typeof connect>>
  const connect = (env: Record<string, string>) => resources.acquire(connectTo(env))
  beforeAll(async () => {
    const env = await resources.acquire(postgres.acquire)
    expect((await run(["migrate"], env)).code).toBe(0)
    databaseUrl = env.DATABASE_URL!
    database = await connect(env)
    await database.importArchive(tenant.archive)
  })
  afterAll(() => resources.release())

  const revoke = (revoked: boolean) =>
    database.sql("update api_keys set revoked_at = case when $2 then now() end where id = $1", [
      tenant.keys.second.stored.id,
      revoked
    ])

  it("serves the prompts of the host for keys of the database, and never caches without watch", async () => {
    const stores = await makeHostStores()
    await stores.importArchive(renamed("Host"))
    const api = await createPromptApi({ databaseUrl, promptRepo: stores.promptRepo })
    // The first request looks up the key; this lookup must not also read the prompt in the database.
    expect(await readTitle(api, `${path}/resolved`)).toBe("Host")
    expect(await readTitle(api)).toBe("Host")
    await stores.importArchive(renamed("Host, edited"))
    expect(await readTitle(api)).toBe("Host, edited")
    expect((await api.handler(request(path, tenant.keys.revoked.plaintext))).status).toBe(401)
    expect((await api.handler(request("/readyz"))).status).toBe(200)
    await api.close()
  })

  it("caches until a change that the host reports or a change of a key in the database", async () => {
    const stores = await makeHostStores()
    await stores.importArchive(renamed("Host"))
    const { watch, setLive, changed } = makeWatch()
    const get = vi.fn(stores.promptRepo.get)
    const api = await createPromptApi({
      databaseUrl,
      promptRepo: { ...stores.promptRepo, get, watch },
      rateLimits: { perKey: 1_000_000, perProcess: 1_000_000 }
    })
    const second = tenant.keys.second.plaintext
    const readStatus = async () => (await api.handler(request(path, second))).status
    try {
      setLive(true)
      // The change feed of the database needs a moment until it is up.
      await expect
        .poll(
          async () => {
            const before = get.mock.calls.length
            expect([await readStatus(), await readStatus()]).toEqual([200, 200])
            return get.mock.calls.length - before
          },
          { timeout: 10_000 }
        )
        .toBeLessThan(2)

      await readTitle(api)
      await stores.importArchive(renamed("Host, edited"))
      changed(tenant.archive.workspace.id)
      expect(await readTitle(api)).toBe("Host, edited")

      await revoke(true)
      await expect.poll(readStatus, { timeout: 2_000, interval: 10 }).toBe(401)
      await revoke(false)
      await expect.poll(readStatus, { timeout: 2_000, interval: 10 }).toBe(200)
    } finally {
      await api.close()
    }
  })

  it("serves the prompts of the database for keys of the host", async () => {
    const stores = await makeHostStores()
    await stores.importArchive(tenant.archive)
    const api = await createPromptApi({ databaseUrl, keyStore: stores.keyStore })
    expect(await readTitle(api)).toBe(greeting!.title)
    await database.sql("update prompts set title = 'In the database' where id = $1", [greeting!.id])
    expect(await readTitle(api)).toBe("In the database")
    await api.close()
  })
})
