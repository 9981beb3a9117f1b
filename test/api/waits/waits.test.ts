import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { describe, expect, it } from "vitest"
import { key, makeTenant, prompt, version } from "../../support/archives.ts"
import { sendGet, sendWait, summarizeWait } from "../../support/clients/waits.ts"
import { getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import { authorize, endpointTargets, startApi } from "../startApi.ts"

const held = "prompt_retrieval_http_requests_held"
const keyLookups = ["hit", "miss", "drop"].map(
  (result) => `prompt_retrieval_cache_lookups_total{cache="keys",result="${result}"}`
)

const [first, second] = [prompt({ title: "First", versions: [version(1)] }), prompt({ title: "Second" })]
const own = makeTenant({ prompts: [first, second] })
const other = makeTenant({ prompts: [prompt()] })
/** The number of held requests that one key may have. */
const maxHeldPerKey = 200
const keys = Array.from({ length: 4 }, () => key(own.home.id, own.owner))
const api = startApi([
  { ...own.archive, api_keys: [own.key.stored, ...keys.map(({ stored }) => stored)] },
  other.archive
])
const targets = endpointTargets(first.id)

let edits = 0
/** Gives a prompt a new text, and returns the text. */
const edit = async ({ id }: { readonly id: string }): Promise<string> => {
  const content = `Text ${++edits}`
  await api.sql("update prompts set current_content = $1 where id = $2", [content, id])
  return content
}

interface Options {
  readonly target?: string
  readonly key?: string
  readonly wait?: number
  readonly headers?: Readonly<Record<string, string>>
}

const get = ({ target = targets.getResolved, key = own.key.plaintext }: Options = {}) =>
  sendGet({ port: api.service().port, target, key }).response

/** Reads a target, and sends a request that waits for a change of it. */
const wait = async (options: Options = {}) => {
  const { target = targets.getResolved, key = own.key.plaintext, ...rest } = options
  const { headers } = await get(options)
  return sendWait({ port: api.service().port, target, key, etag: headers.etag!, ...rest })
}

const expectHeld = (count: number) =>
  expect.poll(() => api.metric(held), { timeout: 10_000, interval: 5 }).toBe(count)

const unchanged = (applied?: string) => ({ status: 304, applied, caching: "no-store" })
const ordinaryCaching = "public, s-maxage=30, stale-while-revalidate=300"
const notHeld = { status: 304, applied: undefined, caching: ordinaryCaching }

describe("a GET with If-None-Match and Prefer: wait", () => {
  it("gets 200 with the new text and no-store when the resource changes", async () => {
    const { response } = await wait()
    await expectHeld(1)
    const content = await edit(first)
    const changed = await response
    expect(summarizeWait(changed)).toEqual({ status: 200, applied: undefined, caching: "no-store" })
    expect(JSON.parse(changed.body).data.resolved_content).toBe(content)
    expect(changed.headers.etag).toBe((await get()).headers.etag)
    await expectHeld(0)
  })

  it("waits on while only other resources change, and gets 304 with Preference-Applied at the end", async () => {
    const { response } = await wait({ wait: 1 })
    await expectHeld(1)
    await edit(second)
    expect(summarizeWait(await response)).toEqual(unchanged("wait=1"))
    await expectHeld(0)
  })

  it.each(Object.entries(targets))("waits at the endpoint %s", async (_, target) => {
    const { response } = await wait({ target, wait: 1 })
    expect(summarizeWait(await response)).toEqual(unchanged("wait=1"))
  })

  it("does not wait if the ETag differs, if the method is HEAD, or if a header is missing", async () => {
    const { headers } = await get()
    const etag = `If-None-Match: ${headers.etag}`
    const prefer = "Prefer: wait=50"
    const send = async (lines: ReadonlyArray<string>, method = "GET") => {
      const response = await api.send(targets.getResolved, [authorize(own.key.plaintext), ...lines], method)
      return [
        response.status,
        getHeader(response, "cache-control"),
        getHeader(response, "preference-applied")
      ]
    }
    expect(await send([prefer, 'If-None-Match: "another"'])).toEqual([200, ordinaryCaching, undefined])
    expect(await send([prefer])).toEqual([200, ordinaryCaching, undefined])
    expect(await send([etag])).toEqual([304, ordinaryCaching, undefined])
    expect(await send([etag, "Prefer: wait=0"])).toEqual([304, ordinaryCaching, undefined])
    expect(await send([etag, prefer], "HEAD")).toEqual([304, ordinaryCaching, undefined])
    const docs = await api.send("/docs", [prefer, "If-None-Match: *"])
    expect([docs.status, getHeader(docs, "preference-applied")]).toEqual([304, undefined])
  })

  it("accepts the preference wait in any of several Prefer headers", async () => {
    const { headers } = await get()
    const lines = [authorize(own.key.plaintext), `If-None-Match: ${headers.etag}`]
    const response = await api.send(targets.getResolved, [
      ...lines,
      "Prefer: respond-async",
      'Prefer: wait="1"'
    ])
    expect([response.status, getHeader(response, "preference-applied")]).toEqual([304, "wait=1"])
  })

  it("gets 404 when the resource is deleted", async () => {
    const third = prompt()
    const columns = "id, workspace_id, title, description, current_content, prompt_type, target_model, intent"
    await api.sql(
      `insert into prompts (${columns}) select $1, workspace_id, title, description, current_content,
      prompt_type, target_model, intent from prompts where id = $2`,
      [third.id, first.id]
    )
    const { response } = await wait({ target: `/api/v1/prompts/${third.id}` })
    await expectHeld(1)
    await api.sql("delete from prompts where id = $1", [third.id])
    const { status, body } = await response
    expect([status, JSON.parse(body).error.message]).toEqual([404, "Prompt not found"])
  })

  it.each([
    [
      "its key is revoked",
      "update api_keys set revoked_at = now() where id = $1",
      0,
      401,
      "API key has been revoked"
    ],
    [
      "its key is replaced and expires",
      "update api_keys set expires_at = now() + interval '500 milliseconds' where id = $1",
      1,
      401,
      "API key has been revoked"
    ],
    ["its key is deleted", "delete from api_keys where id = $1", 2, 401, "Invalid API key"]
  ])("gets the rejection at once when %s", async (_, statement, index, status, message) => {
    const { stored, plaintext } = keys[index]!
    const { response } = await wait({ key: plaintext })
    await expectHeld(1)
    await api.sql(statement, [stored.id])
    const rejected = await response
    expect([rejected.status, JSON.parse(rejected.body).error.message]).toEqual([status, message])
  })

  it("gets 401 when its key expires, without any change", async () => {
    const { stored, plaintext } = keys[3]!
    await api.sql("update api_keys set expires_at = now() + interval '1 second' where id = $1", [stored.id])
    const { response } = await wait({ key: plaintext })
    await expectHeld(1)
    expect((await response).status).toBe(401)
  })

  it.each([
    ["403 when its workspace loses its tier", "tier = 'free'", "tier = 'team'", 403],
    ["402 when its workspace is past due", "billing_status = 'past_due'", "billing_status = 'active'", 402]
  ])("gets %s", async (_, change, undo, status) => {
    const { response } = await wait()
    await expectHeld(1)
    await api.sql(`update workspaces set ${change} where id = $1`, [own.home.id])
    expect((await response).status).toBe(status)
    await api.sql(`update workspaces set ${undo} where id = $1`, [own.home.id])
    await expect.poll(async () => (await get()).status).toBe(200)
  })

  it("reads once for equal requests of a key, and frees the slot of a client that disconnects", async () => {
    const sent = await Promise.all(Array.from({ length: maxHeldPerKey }, () => wait()))
    await expectHeld(maxHeldPerKey)
    expect(summarizeWait(await (await wait()).response)).toEqual(notHeld)
    sent[0]!.close()
    await expectHeld(maxHeldPerKey - 1)
    const next = await wait()
    await expectHeld(maxHeldPerKey)
    const countLookups = async () =>
      (await Promise.all(keyLookups.map(api.metric))).reduce((sum, count) => sum + count)
    const before = await countLookups()
    await edit(first)
    const responses = await Promise.all([...sent.slice(1), next].map(({ response }) => response))
    expect(new Set(responses.map(({ status, body }) => `${status} ${body}`)).size).toBe(1)
    expect(responses[0]!.status).toBe(200)
    expect(await countLookups()).toBe(before + 1)
  })

  it("shares no response with another workspace", async () => {
    const target = targets.list
    const [mine, theirs] = [await wait({ target }), await wait({ target, key: other.key.plaintext })]
    await expectHeld(2)
    await api.sql("update prompts set title = title || '!'")
    const [mineChanged, theirsChanged] = [await mine.response, await theirs.response]
    const findIds = (body: string) =>
      JSON.parse(body)
        .data.map(({ id }: { id: string }) => id)
        .toSorted()
    expect(findIds(mineChanged.body)).toEqual([first.id, second.id].toSorted())
    expect(findIds(theirsChanged.body)).toEqual(other.archive.prompts.map(({ id }) => id))
  })

  it("gets 304 without Preference-Applied as soon as another request arrives on its connection", async () => {
    const { headers } = await get()
    const waiting = rawRequest(targets.getResolved, [
      authorize(own.key.plaintext),
      `If-None-Match: ${headers.etag}`,
      "Prefer: wait=50"
    ]).replace("Connection: close\r\n", "")
    const socket = connect(api.service().port, "127.0.0.1")
    const received = text(socket)
    socket.write(waiting)
    await expectHeld(1)
    // The first of these two requests may not wait, because another request is behind it. The second one may.
    socket.write(waiting + waiting)
    await expectHeld(1)
    socket.write(rawRequest(targets.get, [authorize(own.key.plaintext)]))
    const bytes = await received
    const statuses = [...bytes.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status))
    expect(statuses).toEqual([304, 304, 304, 200])
    expect(bytes).not.toMatch(/preference-applied/i)
  })

  it("is logged once, when it gets its response, and is not in the histogram of durations", async () => {
    const route = "/api/v1/prompts/:id/resolved"
    const histogram = `prompt_retrieval_http_request_duration_seconds_count{route="${route}"}`
    const { response } = await wait({ wait: 1, headers: { "x-request-id": "the-held-request" } })
    await expectHeld(1)
    const before = await api.metric(histogram)
    const findLines = () =>
      api
        .service()
        .output()
        .split("\n")
        .filter((line) => line.includes("the-held-request"))
    expect(findLines()).toEqual([])
    await response
    await expect.poll(findLines).toHaveLength(1)
    expect(JSON.parse(findLines()[0]!)).toMatchObject({ route, status: 304, key_id: own.key.stored.id })
    // A timer of Node may run a few milliseconds early.
    expect(JSON.parse(findLines()[0]!).duration_ms).toBeGreaterThanOrEqual(950)
    expect(await api.metric(histogram)).toBe(before)
  })
})
