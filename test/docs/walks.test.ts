import { afterAll, beforeAll, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { countCalls, listenForInspector } from "../support/callCounts.ts"
import { freePort } from "../support/ports.ts"
import { type Service, sourceProgram, startService, unlimited } from "../support/service.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"
import { readDocument } from "./markdown.ts"

const { archive, keys } = sample()
const database = makeTestDatabase([archive])
const greeting = archive.prompts.find(({ title }) => title === "Greeting")!
const reads = 20

let service: Service
let calls: Awaited<ReturnType<typeof countCalls>>
beforeAll(async () => {
  const port = await freePort()
  const env = { ...database.env, ...unlimited, ...listenForInspector(port) }
  service = await startService(env, "/readyz", [], sourceProgram)
  calls = await countCalls(port)
})
afterAll(async () => {
  calls.close()
  await service.stop()
})

/** Reads a resolved prompt several times, one read after the other. This read ignores its query. */
const readResolved = async (makeQuery: (index: number) => string): Promise<void> => {
  for (let index = 0; index < reads; index++) {
    const path = `/api/v1/prompts/${greeting.id}/resolved${makeQuery(index)}`
    const headers = { authorization: `Bearer ${keys.active.plaintext}` }
    const response = await fetch(service.url + path, { headers })
    await response.arrayBuffer()
    expect(response.status).toBe(200)
  }
}

const toFileName = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** Returns the names of the files in a walk of `docs/architecture.md`, in alphabetical order. */
const readWalk = (name: string): ReadonlyArray<string> => {
  const [walk = ""] = new RegExp(`^${name}: .*?\n\n`, "ms").exec(readDocument("docs/architecture.md")) ?? []
  return Array.from(walk.matchAll(/`(.+?)`/g), ([, path]) => toFileName(path!)).toSorted()
}

it.each([
  { walk: "A hot read", makeQuery: () => "" },
  { walk: "A cold read", makeQuery: (index: number) => `?read=${index}` }
])(
  "docs/architecture.md lists exactly the files of src whose functions run for each read: $walk",
  async ({ walk, makeQuery }) => {
    // After these reads, the connections are open, the key is cached, and so is the response without a query.
    await readResolved((index) => `?warmUp=${index}`)
    await readResolved(() => "")
    const files = await calls.listFiles(reads, () => readResolved(makeQuery))
    expect(files.map(toFileName).toSorted()).toEqual(readWalk(walk))
  }
)
