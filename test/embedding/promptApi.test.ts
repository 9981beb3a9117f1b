import * as Effect from "effect/Effect"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"
import { toSlug } from "../../src/domain/PromptName.ts"
import { createPromptApi, type PromptApi, PromptApiError } from "../../src/index.ts"
import { newId, sample } from "../support/archives.ts"
import { postgresEnv } from "../support/database/connection.ts"
import { freshName, onServer, toDatabaseUrl } from "../support/database/server.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { run, runService, startService } from "../support/services/startService.ts"

const tenant = sample()
const [greeting] = tenant.archive.prompts
const path = `/api/v1/prompts/${greeting!.id}/resolved`
const member = { workspaceId: tenant.archive.workspace.id, tier: "solo" }

const { env, acquire } = makeTestDatabase([tenant.archive])
let api: PromptApi
beforeAll(async () => {
  api = await createPromptApi({ databaseUrl: env.DATABASE_URL })
})
afterAll(() => api?.close())

const key = tenant.keys.active.plaintext
const request = (target: string, token?: string, method = "GET") =>
  new Request(`http://host.example${target}`, {
    method,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` }
  })

/** Returns a response without the headers that can differ between the responses to equal requests. */
const toComparable = async (response: Response) => {
  const headers = Object.fromEntries(response.headers)
  for (const name of ["x-request-id", "date", "connection", "keep-alive"]) delete headers[name]
  return { status: response.status, headers, body: await response.text() }
}

it("api.handler returns the same responses as the HTTP server, and api.prompts returns the same envelopes", async () => {
  const { id, title } = greeting!
  const prompts = "/api/v1/prompts"
  const { get, getResolved, versions } = api.prompts
  const readPrompt = (prompt: string) =>
    [
      [get(member, prompt), `${prompts}/${prompt}`],
      [getResolved(member, prompt), `${prompts}/${prompt}/resolved`],
      [versions.list(member, prompt, { per_page: 2 }), `${prompts}/${prompt}/versions?per_page=2`],
      [versions.get(member, prompt, 2), `${prompts}/${prompt}/versions/2`]
    ] as const
  const filters = { page: 1, per_page: 2, tag: "production", type: "system", folder_id: undefined } as const
  const reads = [
    [api.prompts.list(member), prompts],
    [api.prompts.list(member, filters), `${prompts}?page=1&per_page=2&tag=production&type=system`],
    ...readPrompt(id),
    ...readPrompt(toSlug(title))
  ] as const
  for (const [call, target] of reads)
    expect(await call).toEqual(await (await api.handler(request(target, key))).json())
  const { url } = await acquire(runService(() => startService({ ...env, LOG_LEVEL: "Error" })))
  for (const [target, token, method] of [
    ...reads.map(([, target]) => [target, key] as const),
    [path, key, "HEAD"],
    [path],
    [path, "x"],
    [path, tenant.keys.revoked.plaintext],
    [path, key, "DELETE"],
    [`${prompts}?page=0`, key],
    [`${prompts}/`, key],
    [`${prompts}/${newId()}`, key],
    ...["/healthz", "/readyz", "/", "/docs/"].map((target) => [target] as const)
  ] as const) {
    const sent = request(target, token, method)
    const real = await fetch(url + target, { method: sent.method, headers: sent.headers, redirect: "manual" })
    expect(await toComparable(await api.handler(sent))).toEqual(await toComparable(real))
  }
})

it("api.prompts applies no access check and no rate limit, but limits the Free tier to 7 days of history", async () => {
  const free = { ...member, tier: "free" }
  expect((await api.prompts.get(free, greeting!.id)).data.id).toBe(greeting!.id)
  expect(await api.prompts.versions.list(free, greeting!.id)).toEqual({
    data: [],
    meta: { page: 1, per_page: 20, total: 0 }
  })
  await expect(api.prompts.versions.get(free, greeting!.id, 1)).rejects.toThrow("Version not found")
  // The rate limit is 500 requests per minute, per process.
  await Promise.all(Array.from({ length: 600 }, () => api.prompts.getResolved(member, greeting!.id)))
})

it("api.prompts rejects with a PromptApiError for every missing resource and invalid argument, and never throws synchronously", async () => {
  // biome-ignore lint/suspicious/noExplicitAny: callers in plain JavaScript can pass any value
  const { list, get, getResolved, versions } = api.prompts as any
  const id = greeting!.id
  const expectError = (promise: unknown, code: string, message: string) =>
    expect(promise).rejects.toStrictEqual(new PromptApiError(code, message))
  const reads = [get, getResolved, versions.list]
  for (const read of reads)
    for (const [caller, name] of [
      [member, "x"],
      [{ ...member, workspaceId: newId() }, id]
    ])
      await expectError(read(caller, name), "NOT_FOUND", "Prompt not found")
  const getVersion = (caller: unknown, id: unknown) => versions.get(caller, id, 99)
  await expectError(getVersion(member, id), "NOT_FOUND", "Version not found")
  for (const caller of [undefined, null, "x", Symbol("x"), {}, { ...member, workspaceId: "x" }])
    for (const read of [list, ...reads, getVersion])
      await expectError(read(caller, id), "BAD_REQUEST", "workspaceId must be a UUID")
  /** A value that cannot be converted to a text. */
  const bare = Object.create(null)
  for (const invalid of [undefined, null, Symbol("x"), {}, bare]) {
    for (const read of [...reads, getVersion])
      await expectError(read(member, invalid), "BAD_REQUEST", "id must be a string")
    await expectError(versions.get(member, id, invalid), "BAD_REQUEST", "version must be a number")
  }
  for (const [parameters, message] of [
    ["page", "parameters must be an object"],
    [{ tag: null }, "tag must be a string or a number"],
    [{ page: bare }, "page must be a string or a number"],
    [{ per_page: [5] }, "per_page must be a string or a number"]
  ])
    for (const read of [list(member, parameters), versions.list(member, id, parameters)])
      await expectError(read, "BAD_REQUEST", message as string)
})

it("if the schema does not exist, createPromptApi rejects with an error that names the command that creates the schema", async () => {
  const empty = await acquire(postgresEnv)
  await expect(createPromptApi({ databaseUrl: empty.DATABASE_URL! })).rejects.toThrow(/run .*migrate/)
})

it("createPromptApi succeeds before its database exists, and the API serves once the database is created and migrated", async () => {
  const printed: Array<string> = []
  const warn = (message: string) => void printed.push(message)
  const name = freshName()
  const env = { DATABASE_URL: toDatabaseUrl(name) }
  onTestFinished(() => Effect.runPromise(onServer(`drop database if exists ${name} with (force)`)))
  const early = await createPromptApi({ databaseUrl: env.DATABASE_URL, logger: { warn } })
  onTestFinished(early.close)
  const readStatus = async () => (await early.handler(request("/readyz"))).status
  const countLogged = () => printed.filter((line) => /schema is version 0/.test(line)).length
  expect(await readStatus()).toBe(503)
  expect((await early.handler(request(path, key))).status).toBe(503)
  await Effect.runPromise(onServer(`create database ${name} template template0`))
  await expect.poll(countLogged).toBe(1)
  expect(await readStatus()).toBe(503)
  await expect(early.prompts.list(member)).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" })
  expect((await run(["migrate"], env)).code).toBe(0)
  await expect.poll(readStatus).toBe(200)
  // The later checks of the database did not log the problem again.
  expect(countLogged()).toBe(1)
})

it("api.handler and api.prompts report SERVICE_UNAVAILABLE after close", async () => {
  const closed = await createPromptApi({ databaseUrl: env.DATABASE_URL })
  expect((await closed.handler(request(path, key))).status).toBe(200)
  await closed.close()
  const response = await closed.handler(request(`${path}?after=it`, key))
  expect(response.status).toBe(503)
  expect(response.headers.get("x-request-id")).not.toBeNull()
  const [code, message] = ["SERVICE_UNAVAILABLE", "Service unavailable"]
  expect(await response.json()).toEqual({ error: { code, message } })
  await expect(closed.prompts.get(member, greeting!.id)).rejects.toStrictEqual(
    new PromptApiError(code, message)
  )
})
