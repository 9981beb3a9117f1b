import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createPromptApi, type PromptApi, PromptApiError } from "../../src/index.ts"
import { newId, sample } from "../support/archives.ts"
import { makeResources, postgresEnv } from "../support/database.ts"
import { freshName, onServer, toDatabaseUrl } from "../support/postgres.ts"
import { run, startService } from "../support/service.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"

const tenant = sample()
const [greeting] = tenant.archive.prompts
const path = `/api/v1/prompts/${greeting!.id}/resolved`
const member = { workspaceId: tenant.archive.workspace.id, tier: "solo" }

describe("createPromptApi", () => {
  const resources = makeResources()
  const { env } = makeTestDatabase([tenant.archive])
  let api: PromptApi
  const request = (target: string, token?: string, method = "GET") =>
    new Request(`http://host.example${target}`, {
      method,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` }
    })
  const key = tenant.keys.active.plaintext

  beforeAll(async () => {
    api = await createPromptApi({ databaseUrl: env.DATABASE_URL })
  })
  afterAll(async () => {
    await api?.close()
    await resources.release()
  })

  /** Returns a response without the headers that can differ even if the requests are equal. */
  const toComparable = async (response: Response) => {
    const headers = Object.fromEntries(response.headers)
    for (const name of ["x-request-id", "date", "connection", "keep-alive"]) delete headers[name]
    return { status: response.status, headers, body: await response.text() }
  }

  it("api.handler returns the same responses as the HTTP server", async () => {
    const service = await startService({ ...env, LOG_LEVEL: "Error" })
    try {
      for (const [target, token, method] of [
        ["/api/v1/prompts?per_page=3", key],
        [path, key],
        [path, key, "HEAD"],
        [path],
        [path, "x"],
        [path, tenant.keys.revoked.plaintext],
        [path, key, "DELETE"],
        ["/api/v1/prompts?page=0", key],
        ["/api/v1/prompts/", key],
        [`/api/v1/prompts/${newId()}`, key],
        ["/healthz"],
        ["/readyz"],
        ["/"],
        ["/docs/"]
      ] as const) {
        const webRequest = request(target, token, method)
        const { headers } = webRequest
        const served = await fetch(service.url + target, {
          method: webRequest.method,
          headers,
          redirect: "manual"
        })
        expect(await toComparable(await api.handler(webRequest))).toEqual(await toComparable(served))
      }
    } finally {
      await service.stop()
    }
  })

  it("api.prompts returns the same envelopes as the HTTP API", async () => {
    const read = async (target: string) => (await api.handler(request(target, key))).json()
    const { id } = greeting!
    const filtered = {
      page: 1,
      per_page: 2,
      tag: "production",
      type: "system",
      folder_id: undefined
    } as const
    const prompts = "/api/v1/prompts"
    for (const [call, target] of [
      [api.prompts.list(member), prompts],
      [api.prompts.list(member, filtered), `${prompts}?page=1&per_page=2&tag=production&type=system`],
      [api.prompts.get(member, id), `${prompts}/${id}`],
      [api.prompts.getResolved(member, id), path],
      [api.prompts.versions.list(member, id, { per_page: 2 }), `${prompts}/${id}/versions?per_page=2`],
      [api.prompts.versions.get(member, id, 2), `${prompts}/${id}/versions/2`]
    ] as const)
      expect(await call).toEqual(await read(target))
  })

  it("api.prompts applies no access check and no rate limit, but limits the Free tier to 7 days of history", async () => {
    const free = { ...member, tier: "free" }
    expect((await api.prompts.get(free, greeting!.id)).data.id).toBe(greeting!.id)
    expect(await api.prompts.versions.list(free, greeting!.id)).toEqual({
      data: [],
      meta: { page: 1, per_page: 20, total: 0 }
    })
    await expect(api.prompts.versions.get(free, greeting!.id, 1)).rejects.toThrow("Version not found")
    // The rate limit of a process is 500.
    await Promise.all(Array.from({ length: 600 }, () => api.prompts.getResolved(member, greeting!.id)))
  })

  const captureError = (promise: Promise<unknown>) =>
    promise.then(
      () => undefined,
      (error: unknown) =>
        error instanceof PromptApiError ? { code: error.code, message: error.message } : error
    )

  it("api.prompts rejects with a PromptApiError for every missing resource and invalid argument, and never throws synchronously", async () => {
    // biome-ignore lint/suspicious/noExplicitAny: callers in plain JavaScript can pass any value
    const prompts = api.prompts as any
    const id = greeting!.id
    const broken = {
      toString: () => {
        throw new Error("broken")
      }
    }
    const notFound = { code: "NOT_FOUND", message: "Prompt not found" }
    const badRequest = (message: string) => ({ code: "BAD_REQUEST", message })
    const calls: ReadonlyArray<(caller: unknown, id: unknown) => Promise<unknown>> = [
      prompts.get,
      prompts.getResolved,
      prompts.versions.list
    ]
    for (const call of calls) {
      expect(await captureError(call(member, "x"))).toEqual(notFound)
      expect(await captureError(call({ ...member, workspaceId: newId() }, id))).toEqual(notFound)
    }
    const getVersion = (caller: unknown, id: unknown) => prompts.versions.get(caller, id, 99)
    const missing = { code: "NOT_FOUND", message: "Version not found" }
    expect(await captureError(getVersion(member, id))).toEqual(missing)
    for (const caller of [undefined, null, "x", Symbol("x"), {}, { ...member, workspaceId: "x" }])
      for (const call of [prompts.list, ...calls, getVersion])
        expect(await captureError(call(caller, id))).toEqual(badRequest("workspaceId must be a UUID"))
    for (const invalid of [undefined, null, Symbol("x"), {}, Object.create(null), broken]) {
      for (const call of [...calls, getVersion])
        expect(await captureError(call(member, invalid))).toEqual(badRequest("id must be a string"))
      expect(await captureError(prompts.versions.get(member, id, invalid))).toEqual(
        badRequest("version must be a number")
      )
    }
    for (const [parameters, message] of [
      ["page", "parameters must be an object"],
      [{ page: null }, "page must be an integer from 1 to 9007199254740991"],
      [{ page: broken }, "page must be a string or a number"],
      [{ per_page: [5] }, "per_page must be a string or a number"]
    ] as const) {
      const expected = badRequest(message)
      expect(await captureError(prompts.list(member, parameters))).toEqual(expected)
      expect(await captureError(prompts.versions.list(member, id, parameters))).toEqual(expected)
    }
  })

  it("createPromptApi rejects if the schema does not exist, and names the command that creates the schema", async () => {
    const empty = await resources.acquire(postgresEnv)
    await expect(createPromptApi({ databaseUrl: empty.DATABASE_URL! })).rejects.toThrow(/run .*migrate/)
  })

  it("createPromptApi succeeds before its database exists, and the API serves once the database is created and migrated", async () => {
    const printed: Array<string> = []
    const warn = (message: string) => void printed.push(message)
    const name = freshName()
    const env = { DATABASE_URL: toDatabaseUrl(name) }
    const early = await createPromptApi({ databaseUrl: env.DATABASE_URL, logger: { warn } })
    try {
      const readStatus = async () => (await early.handler(request("/readyz"))).status
      const countLogged = () => printed.filter((line) => /schema is version 0/.test(line)).length
      expect(await readStatus()).toBe(503)
      expect((await early.handler(request(path, key))).status).toBe(503)
      await Effect.runPromise(onServer(`create database ${name} template template0`))
      await expect.poll(countLogged).toBe(1)
      expect(await readStatus()).toBe(503)
      expect((await run(["migrate"], env)).code).toBe(0)
      await expect.poll(readStatus).toBe(200)
      // The checks of the database in between did not log again.
      expect(countLogged()).toBe(1)
    } finally {
      await early.close()
      await Effect.runPromise(onServer(`drop database if exists ${name} with (force)`))
    }
  })

  it("api.handler and api.prompts report SERVICE_UNAVAILABLE after close", async () => {
    const closed = await createPromptApi({ databaseUrl: env.DATABASE_URL })
    expect((await closed.handler(request(path, key))).status).toBe(200)
    await closed.close()
    const unavailable = { code: "SERVICE_UNAVAILABLE", message: "Service unavailable" }
    const response = await closed.handler(request(`${path}?after=it`, key))
    expect(response.status).toBe(503)
    expect(response.headers.get("x-request-id")).not.toBeNull()
    expect(await response.json()).toEqual({ error: unavailable })
    expect(await captureError(closed.prompts.get(member, greeting!.id))).toEqual(unavailable)
  })
})
