import { expect, it } from "vitest"
import type { PageParams } from "../src/index.ts"
import { jsonResponse, makeScriptedClient } from "./support.ts"

const makeIds = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`)

/** Creates a client of a service with `count` prompts. `before` can change their ids before the client gets a page. */
const makeListClient = (count: number, before: (page: number, ids: Array<string>) => void = () => {}) => {
  const ids = makeIds(count)
  const { client, requests } = makeScriptedClient([
    ({ url }) => {
      const query = new URL(url).searchParams
      const page = Number(query.get("page") ?? 1)
      const per_page = Math.min(100, Number(query.get("per_page") ?? 20))
      before(page, ids)
      const data = ids.slice((page - 1) * per_page, page * per_page).map((id) => ({ id }))
      return jsonResponse(200, { data, meta: { page, per_page, total: ids.length } })
    }
  ])
  const requestedPages = () => requests.map(({ url }) => Number(new URL(url).searchParams.get("page") ?? 1))
  return { list: client.prompts.list, requests, requestedPages }
}

const collect = async (list: AsyncIterable<{ readonly id: string }>): Promise<Array<string>> => {
  const ids: Array<string> = []
  for await (const { id } of list) ids.push(id)
  return ids
}

it("awaiting a list returns one page, and an iteration that ends early requests no further page", async () => {
  const { list, requestedPages } = makeListClient(7)
  const meta = { page: 2, per_page: 3, total: 7 }
  expect(await list({ page: 2, per_page: 3 })).toEqual({
    data: [{ id: "p3" }, { id: "p4" }, { id: "p5" }],
    meta
  })
  for await (const { id } of list({ per_page: 3 })) if (id === "p2") break
  expect(requestedPages()).toEqual([2, 1])
})

it.each<[count: number, params: PageParams, from: number, pages: Array<number>]>([
  [0, {}, 0, [1]],
  [20, {}, 0, [1]],
  [21, {}, 0, [1, 2]],
  [7, { per_page: 3, page: 2 }, 3, [2, 3]],
  [7, { per_page: 3, page: 9 }, 7, [9]],
  [250, { per_page: 1000 }, 0, [1, 2, 3]]
])(
  "iterating a list of %i items with %j returns every item from index %i on, once and in order",
  async (count, params, from, pages) => {
    const { list, requestedPages } = makeListClient(count)
    expect(await collect(list(params))).toEqual(makeIds(count).slice(from))
    expect(requestedPages()).toEqual(pages)
  }
)

it("filters and call options apply to every page, and an item that moves to a later page is returned once", async () => {
  const { list, requests } = makeListClient(2, (page, ids) => {
    if (page === 2) ids.unshift("new")
  })
  expect(await collect(list({ per_page: 1, tag: "t" }, { headers: { "x-app": "a" } }))).toEqual(makeIds(2))
  expect(requests.map(({ url, headers }) => [new URL(url).search, headers["x-app"]])).toEqual([
    ["?per_page=1&tag=t", "a"],
    ["?page=2&per_page=1&tag=t", "a"],
    ["?page=3&per_page=1&tag=t", "a"]
  ])
})
