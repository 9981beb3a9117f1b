import { assert, it as property } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { describe, expect, it } from "vitest"
import type { PromptId } from "../../src/domain/Prompt.ts"
import * as Service from "../../src/domain/PromptNames.ts"
import type { ClientOptions } from "../src/index.ts"
import { isId, PromptNames } from "../src/PromptNames.ts"
import { FakeService } from "../src/testing.ts"
import { makeBundle } from "./makeBundle.ts"
import { captureError, settle, useFakeTime } from "./support.ts"

const makeId = (start: string, end: number) =>
  `${start}-0000-4000-8000-${String(end).padStart(12, "0")}` as PromptId

describe("the names of the client and of the service", () => {
  const collisions = Schema.Literals([
    "A",
    "a!",
    "B",
    "a-00000001",
    "A 00000001",
    `a-${makeId("00000001", 0).replaceAll("-", "")}`,
    "",
    "prompt",
    "Größe: élan",
    "プロンプト",
    "a".repeat(100),
    `${"é".repeat(200)} end`
  ])
  const starts = Schema.Literals(["00000001", "00000002", "abcdefab"])
  property.prop(
    "the client and the service give the same names to prompts with any titles and ids, and find the same id for any name",
    {
      prompts: Schema.Array(
        Schema.Struct({ title: Schema.Union([collisions, Schema.String]), start: starts })
      ),
      texts: Schema.Array(Schema.String)
    },
    ({ prompts, texts }) => {
      const all = prompts.map(({ title, start }, index) => ({ id: makeId(start, index), title }))
      const service = new Service.PromptNames()
      for (const prompt of all) service.add(prompt)
      const client = new PromptNames(all)
      const names = all.map((prompt) => client.getName(prompt))
      assert.deepStrictEqual(
        names,
        all.map((prompt) => service.getName(prompt))
      )
      const slugs = all.map(({ title }) => Service.toSlug(title))
      const suffixed = all.flatMap(({ id }, index) =>
        [id.slice(0, 8), id.replaceAll("-", "")].map((digits) => `${slugs[index]}-${digits}`)
      )
      for (const name of [...names, ...slugs, ...suffixed, ...texts]) {
        assert.strictEqual(client.findId(name), service.findId(name), name)
      }
    },
    { arbitrary: { runs: 1_000 } }
  )
})

const ids = (count: number) => Array.from({ length: count }, (_, index) => makeId("00000001", index))

/** A service of prompts with the titles `Prompt 0`, `Prompt 1` and so on, and a client that never retries. */
const makeService = (count: number, options: ClientOptions = {}) => {
  const service = new FakeService({
    prompts: ids(count).map((id, index) => ({ id, title: `Prompt ${index}`, content: `Text ${index}` }))
  })
  const listed = () => service.requests.filter((target) => target.includes("?"))
  return { service, listed, client: service.connect(options) }
}

const texts = async (call: Promise<{ readonly data: { readonly resolved_content: string } }>) =>
  (await call).data.resolved_content

describe("a prompt that is addressed by name", () => {
  it("a UUID in upper or lower case is an id, and every other string is a name", () => {
    expect(
      [makeId("abcdefab", 1), makeId("ABCDEFAB", 1), "abcdefab", "", `${makeId("abcdefab", 1)}0`].map(isId)
    ).toEqual([true, true, false, false, false])
  })

  it("every method takes a name, and sends a single request once the name is known", async () => {
    const { service, client } = makeService(2)
    const { prompts } = client
    expect(await texts(prompts.getResolved("prompt-1"))).toBe("Text 1")
    const id = ids(2)[1]!
    expect(service.requests.splice(0)).toEqual([
      "/api/v1/prompts?per_page=100",
      `/api/v1/prompts/${id}/resolved`
    ])
    expect((await prompts.get("prompt-1")).data.title).toBe("Prompt 1")
    expect((await prompts.versions.list("prompt-1", { per_page: 1 })).meta.total).toBe(1)
    expect((await prompts.versions.get("prompt-1", 1)).data.content).toBe("Text 1")
    expect(await texts(prompts.getResolved(`prompt-1-${id.slice(0, 8)}`))).toBe("Text 1")
    expect(await texts(prompts.getResolved({ name: "prompt-1", id: ids(1)[0]!, slots: [] }))).toBe("Text 1")
    expect(await texts(prompts.getResolved({ id: ids(1)[0]!, slots: [] }))).toBe("Text 0")
    expect(service.requests).toHaveLength(6)
  })

  it("a client and a client from its withOptions share the list of prompts: 1,000 concurrent calls by name send 10 requests for the list", async () => {
    const { client, listed } = makeService(1_000)
    const derived = client.withOptions({ cache: {} })
    await Promise.all(
      ids(1_000).map((_, index) => (index % 2 ? client : derived).prompts.getResolved(`prompt-${index}`))
    )
    expect(listed()).toHaveLength(10)
  })

  it("an unknown name rejects with a NotFoundError that suggests the nearest name, even with a fallback", async () => {
    const { service, client } = makeService(1)
    service.set({ name: "support-agent", content: "" })
    service.set({ id: makeId("0000000a", 1), title: "Twin", content: "" })
    service.set({ id: makeId("0000000b", 2), title: "twin", content: "" })
    for (const [name, nearest] of [
      ["suport-agent", "support-agent"],
      ["Support Agent", "support-agent"],
      ["twin", "twin-0000000a"]
    ]) {
      await expect(client.prompts.getResolved(name!, { fallback: "x" })).rejects.toMatchObject({
        name: "NotFoundError",
        status: 404,
        code: "NOT_FOUND",
        message: `No prompt has the name ${name}; did you mean ${nearest}?`
      })
    }
    const empty = new FakeService().connect()
    await expect(empty.prompts.get("greeting")).rejects.toThrow(/^No prompt has the name greeting$/)
  })

  it("a call with an unknown name reads the list again, and once more if the name is still missing", async () => {
    const { service, client, listed } = makeService(1)
    await client.prompts.get("prompt-0")
    service.set({ name: "new", content: "New" })
    expect(await texts(client.prompts.getResolved("new"))).toBe("New")
    expect(listed()).toHaveLength(2)
    await expect(client.prompts.get("newer")).rejects.toMatchObject({ name: "NotFoundError" })
    expect(listed()).toHaveLength(4)
  })

  it("a name is looked up again if its prompt is gone, but not if only a version of the prompt is missing", async () => {
    const { service, client, listed } = makeService(1, { cache: { ttl: 0, maxStale: 0 } })
    expect(await texts(client.prompts.getResolved("prompt-0"))).toBe("Text 0")
    await expect(client.prompts.versions.get("prompt-0", 7)).rejects.toThrow("Version not found")
    expect(listed()).toHaveLength(1)
    service.remove("prompt-0")
    service.set({ id: makeId("00000002", 0), title: "Prompt 0", content: "Imported again" })
    expect(await texts(client.prompts.getResolved("prompt-0"))).toBe("Imported again")
    expect(listed()).toHaveLength(2)
    service.remove("prompt-0")
    await expect(client.prompts.getResolved("prompt-0")).rejects.toThrow("No prompt has the name prompt-0")
  })

  it("a name still finds its prompt after the title has changed, until the list is read again", async () => {
    const { service, client } = makeService(1)
    await client.prompts.get("prompt-0")
    service.set({ id: ids(1)[0]!, title: "Renamed", content: "Same" })
    expect(await texts(client.prompts.getResolved("prompt-0"))).toBe("Same")
    expect(await texts(client.prompts.getResolved("renamed"))).toBe("Same")
    await expect(client.prompts.get("prompt-0")).rejects.toMatchObject({ name: "NotFoundError" })
  })

  it("prefetch reads the list once for all names, and reports the names that are not in the list", async () => {
    const { client, listed } = makeService(250, { cache: {} })
    const names = ids(250).map((_, index) => `prompt-${index}`)
    const { loaded, failures } = await client.prefetch([...names, ids(1)[0]!, "none"])
    expect(loaded).toBe(251)
    expect(failures).toMatchObject([{ id: "none", error: { name: "NotFoundError" } }])
    expect(listed()).toHaveLength(3)
    expect((await client.prompts.getResolved("prompt-249")).source).toBe("cached")
  })
})

it("prefetch with or without a filter stores the names of all prompts, so that a name finds the cached text during an outage", async () => {
  for (const [filter, requests] of [
    [{}, 1],
    [{ tag: "production" }, 2]
  ] as const) {
    const { client, service, listed } = makeService(1, { cache: { ttl: 0 } })
    await client.prefetch(filter)
    service.failWith("no connection")
    expect(await client.prompts.getResolved("prompt-0")).toMatchObject({ source: "stale" })
    expect(listed()).toHaveLength(requests)
  }
})

describe("the name of a prompt in a bundle", () => {
  const bundled = [
    { id: ids(1)[0]!, name: "prompt-0", content: "Bundled" },
    // Another prompt of the workspace has the same slug.
    { id: makeId("0000000a", 1), name: "twin-0000000a", title: "Twin", content: "First twin" }
  ]
  const bundle = makeBundle(bundled)

  it("a call with the name of a bundled prompt sends no request for the list", async () => {
    const { client, service } = makeService(1, { bundle })
    expect(await client.prompts.getResolved("prompt-0")).toMatchObject({ source: "fresh" })
    expect(service.requests).toEqual([`/api/v1/prompts/${ids(1)[0]}/resolved`])
  })

  it("if the workspace does not have the id that the bundle gives for a name, the name selects the prompt that has this name in the workspace", async () => {
    const other = new FakeService({ prompts: [{ name: "prompt-0", content: "Production" }] })
    const client = other.connect({ bundle })
    expect(await texts(client.prompts.getResolved("prompt-0"))).toBe("Production")
    other.failWith(503)
    expect(await client.prompts.getResolved("prompt-0")).toMatchObject({ source: "bundled" })
  })

  it("in the mode bundle-first and during an outage, a name selects the bundled text, or the fallback if the name is not in the bundle", async () => {
    const { client, service } = makeService(0, { bundle, mode: "bundle-first" })
    expect(await texts(client.prompts.getResolved("twin-0000000a"))).toBe("First twin")
    expect(await texts(client.prompts.getResolved({ name: "other", id: ids(1)[0]!, slots: [] }))).toBe(
      "Bundled"
    )
    expect(service.requests).toEqual([])
    service.failWith("no connection")
    const outage = service.connect({ bundle })
    expect(await texts(outage.prompts.getResolved("prompt-0"))).toBe("Bundled")
    const { data, source } = await outage.prompts.getResolved("twin", { fallback: "Fallback" })
    expect([data.id, data.resolved_content, source]).toEqual(["twin", "Fallback", "fallback"])
  })
})

describe("timeouts, aborts and pauses of calls that select a prompt by its name", () => {
  useFakeTime()

  it("the timeout covers the requests for the list and for the prompt, and aborting a signal ends only the call with this signal", async () => {
    const { service } = makeService(1)
    let delay = 700
    const client = service.connect({ timeout: 1_000 }).withOptions({
      fetch: async (url, init) => {
        await new Promise((resolve) => setTimeout(resolve, delay))
        return service.fetch(url, init)
      }
    })
    expect(await settle(client.prompts.get("prompt-0"))).toMatchObject({
      error: { name: "TimeoutError", message: "No result within 1000 ms" },
      took: 1_000
    })
    delay = 100
    const controller = new AbortController()
    const fresh = client.withOptions({ headers: { a: "1" } })
    const aborted = fresh.prompts.get("prompt-0", { signal: controller.signal })
    const other = fresh.prompts.get("prompt-0")
    controller.abort()
    expect(await captureError(aborted)).toMatchObject({ name: "AbortError" })
    expect(await settle(other)).toMatchObject({ value: { data: { title: "Prompt 0" } }, took: 200 })
  })

  it("while the service is not available, a client with a cache pauses between its requests for the list", async () => {
    const { service } = makeService(1)
    service.failWith(503)
    const client = service.connect({ cache: {} })
    for (let call = 0; call < 5; call++) {
      const { value } = (await settle(client.prompts.getResolved("prompt-0", { fallback: "x" }))) as {
        value: { readonly source: string }
      }
      expect(value.source).toBe("fallback")
    }
    expect(service.requests).toHaveLength(2)
  })
})
