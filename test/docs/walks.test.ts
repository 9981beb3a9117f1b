import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { type Service, sourceProgram, startService, unlimited } from "../support/service.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"
import { makeTestDirectory } from "../support/testDirectory.ts"
import { readDocument, root } from "./markdown.ts"

const { archive, keys } = sample()
const database = makeTestDatabase([archive])
const greeting = archive.prompts.find(({ title }) => title === "Greeting")!
const reads = 20

/**
 * On SIGUSR2, the service writes how often each function was called since the last signal. The compilers are off, because
 * they inline small functions, and V8 does not count inlined calls.
 */
const coverage = makeTestDirectory("coverage-")
const hook =
  'import v8 from "node:v8"; v8.setFlagsFromString("--no-opt --no-maglev"); process.on("SIGUSR2", v8.takeCoverage)'
const coverageEnv = {
  NODE_V8_COVERAGE: coverage,
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}`
}

let service: Service
beforeAll(async () => {
  const env = { ...database.env, ...unlimited, ...coverageEnv }
  service = await startService(env, "/readyz", [], sourceProgram)
})
afterAll(() => service?.stop())

interface ScriptCoverage {
  readonly url: string
  readonly functions: ReadonlyArray<{ readonly ranges: ReadonlyArray<{ readonly count: number }> }>
}

const takeCoverage = async (): Promise<ReadonlyArray<ScriptCoverage>> => {
  const before = readdirSync(coverage)
  const findNew = () => readdirSync(coverage).find((file) => !before.includes(file))
  service.process.kill("SIGUSR2")
  await expect.poll(() => JSON.parse(readFileSync(join(coverage, findNew()!), "utf8"))).toBeDefined()
  return JSON.parse(readFileSync(join(coverage, findNew()!), "utf8")).result
}

/** Runs `work`, and returns the files of `src` with a function that was called at least `minCalls` times meanwhile. */
const listCalledFiles = async (
  minCalls: number,
  work: () => Promise<void>
): Promise<ReadonlyArray<string>> => {
  await takeCoverage()
  await work()
  return (await takeCoverage())
    .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) >= minCalls))
    .filter(({ url }) => url.startsWith(`file://${root}/src/`))
    .map(({ url }) => toFileName(url))
    .toSorted()
}

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
    expect(await listCalledFiles(reads, () => readResolved(makeQuery))).toEqual(readWalk(walk))
  }
)
