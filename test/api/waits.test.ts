import { once } from "node:events"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { describe, expect, it } from "vitest"
import { key, makeTenant, prompt, version } from "../support/archives.ts"
import { getHeader, rawRequest } from "../support/clients/rawHttp.ts"
import { read, sendWait, summarizeWait } from "../support/clients/read.ts"
import { authorize, endpointTargets, startApi } from "./startApi.ts"

const held = "prompt_retrieval_http_requests_held"
const keyLookups = ["hit", "miss", "drop"].map(
  (result) => `prompt_retrieval_cache_lookups_total{cache="keys",result="${result}"}`
)

const [first, second] = [prompt({ title: "First", versions: [version(1)] }), prompt({ title: "Second" })]
const own = makeTenant({ prompts: [first, second] })
const other = makeTenant({ prompts: [prompt()] })
const targets = endpointTargets(first.id)

const keys = [own.key, ...Array.from({ length: 4 }, () => key(own.home.id, own.owner))]

const api = startApi([{ ...own.archive, api_keys: keys.map(({ stored }) => stored) }, other.archive])
const toUrl = (target: string) => api.service().url + target

let edits = 0
/** Gives the first prompt a new text, and returns the text. */
const edit = async (): Promise<string> => {
  const content = `Text ${++edits}`
  await api.sql("update prompts set current_content = $1 where id = $2", [content, first.id])
  return content
}

const get = (target: string = targets.getResolved, key: string = own.key.plaintext) =>
  read(toUrl(target), key)

/** Reads a target, and then sends a request that waits until the target changes. */
const wait = async (target: string = targets.getResolved, key: string = own.key.plaintext, wait?: number) =>
  sendWait(toUrl(target), key, (await get(target, key)).headers.etag, wait)

const expectHeld = (count: number) => expect.poll(() => api.metric(held), { interval: 5 }).toBe(count)

const unchanged = (applied?: string) => ({ status: 304, applied, caching: "no-store" })
const ordinaryCaching = "public, s-maxage=30, stale-while-revalidate=300"

describe("requests that wait for a change", () => {
  it("a request that waits gets 200 with the new text and no-store when the resource changes, and is missing from the histogram of request durations", async () => {
    const { response } = await wait()
    const route = "/api/v1/prompts/:id/resolved"
    const histogram = `prompt_retrieval_http_request_duration_seconds_count{route="${route}"}`
    const before = await api.metric(histogram)
    await expectHeld(1)
    const content = await edit()
    const changed = await response
    expect(await api.metric(histogram)).toBe(before)
    expect(summarizeWait(changed)).toEqual({ status: 200, applied: undefined, caching: "no-store" })
    expect(JSON.parse(changed.body).data.resolved_content).toBe(content)
    expect(changed.headers.etag).toBe((await get()).headers.etag)
    await expectHeld(0)
  })

  it.each(Object.entries(targets))(
    "a request that waits at the endpoint %s gets 304 with Preference-Applied if nothing changes",
    async (_, target) => {
      const { response } = await wait(target, undefined, 1)
      expect(summarizeWait(await response)).toEqual(unchanged("wait=1"))
    }
  )

  it("a request with Prefer: wait gets its response at once if its ETag is outdated, its method is HEAD, or a header is missing", async () => {
    const etag = `If-None-Match: ${(await get()).headers.etag}`
    const prefer = "Prefer: wait=50"
    const send = async (target: string, lines: ReadonlyArray<string>, method = "GET") => {
      const response = await api.send(target, [authorize(own.key.plaintext), ...lines], method)
      return [response.status, getHeader(response, "preference-applied")]
    }
    for (const lines of [[prefer, 'If-None-Match: "another"'], [prefer]])
      expect(await send(targets.getResolved, lines)).toEqual([200, undefined])
    for (const lines of [[etag], [etag, "Prefer: wait=0"]])
      expect(await send(targets.getResolved, lines)).toEqual([304, undefined])
    expect(await send(targets.getResolved, [etag, prefer], "HEAD")).toEqual([304, undefined])
    expect(await send("/docs", [prefer, "If-None-Match: *"])).toEqual([304, undefined])
  })

  it.each([
    ["is revoked", "revoked_at = now()", keys[3]!],
    ["expires", "expires_at = now() + '1 second'", keys[4]!]
  ])("a request that waits gets 401 at once when its key %s", async (_, change, { plaintext, stored }) => {
    const { response } = await wait(targets.get, plaintext)
    await expectHeld(1)
    await api.sql(`update api_keys set ${change} where id = $1`, [stored.id])
    expect((await response).status).toBe(401)
  })

  it("equal requests that wait share one key lookup, and a disconnect makes room for another request of the key", async () => {
    const sent = await Promise.all(Array.from({ length: 200 }, () => wait()))
    await expectHeld(200)
    const refused = { ...unchanged(), caching: ordinaryCaching }
    expect(summarizeWait(await (await wait()).response)).toEqual(refused)
    sent[0]!.close()
    await expectHeld(199)
    const next = await wait()
    await expectHeld(200)
    const countLookups = async () =>
      (await Promise.all(keyLookups.map(api.metric))).reduce((sum, count) => sum + count)
    const before = await countLookups()
    await edit()
    const responses = await Promise.all([...sent.slice(1), next].map(({ response }) => response))
    expect(new Set(responses.map(({ status, body }) => `${status} ${body}`)).size).toBe(1)
    expect(responses[0]!.status).toBe(200)
    expect(await countLookups()).toBe(before + 1)
  })

  it("requests of two workspaces that wait for the same target get different responses", async () => {
    const waits = [await wait(targets.list), await wait(targets.list, other.key.plaintext)]
    await expectHeld(2)
    await api.sql("update prompts set title = title || '!'")
    const found = await Promise.all(
      waits.map(async ({ response }) => {
        const { data } = JSON.parse((await response).body)
        return data.map(({ id }: { readonly id: string }) => id).toSorted()
      })
    )
    expect(found).toEqual([own, other].map(({ archive }) => archive.prompts.map(({ id }) => id).toSorted()))
  })

  it("a request that waits gets 304 without Preference-Applied as soon as another request arrives on its connection", async () => {
    const waiting = rawRequest(targets.getResolved, [
      authorize(own.key.plaintext),
      `If-None-Match: ${(await get()).headers.etag}`,
      "Prefer: wait=50"
    ]).replace("Connection: close\r\n", "")
    const socket = connect(api.service().port, "127.0.0.1")
    const received = text(socket)
    socket.write(waiting)
    await expectHeld(1)
    // The service holds only the second of these requests, because it holds only the last request of a connection.
    socket.write(waiting + waiting)
    await expectHeld(1)
    socket.write(rawRequest(targets.get, [authorize(own.key.plaintext)]))
    const bytes = await received
    const statuses = [...bytes.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status))
    expect(statuses).toEqual([304, 304, 304, 200])
    expect(bytes).not.toMatch(/preference-applied/i)
  })
})

it("on SIGTERM, requests that wait get 304 without Preference-Applied before the service stops", async () => {
  const { process } = api.service()
  const { etag } = (await get()).headers
  const sent = Array.from({ length: 300 }, (_, index) =>
    sendWait(toUrl(targets.getResolved), keys[index % 3]!.plaintext, etag)
  )
  await expectHeld(sent.length)
  const exited = once(process, "exit")
  process.kill("SIGTERM")
  const responses = await Promise.all(sent.map(({ response }) => response))
  expect(responses.map(summarizeWait)).toEqual(sent.map(() => unchanged()))
  expect((await exited)[0]).toBe(0)
})
