import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import {
  runProcess,
  type Service,
  sourceProgram,
  startService,
  unlimited
} from "../support/services/startService.ts"
import { makeTestDirectory } from "../support/testDirectory.ts"
import { readDocument, root } from "./markdown.ts"

const { archive, keys } = sample()
const database = makeTestDatabase([archive])
const greeting = archive.prompts.find(({ title }) => title === "Greeting")!
const reads = 20

/**
 * On SIGUSR2, the service writes how often each function was called since the last signal. The optimizing compilers are
 * off, because V8 does not count the calls that they inline.
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

/** Returns the files of `src` whose coverage contains a function with at least `minCalls` calls. */
const listCalledFiles = async (
  minCalls: number,
  writeCounts: () => unknown
): Promise<ReadonlyArray<string>> => {
  const before = readdirSync(coverage)
  const read = () =>
    readdirSync(coverage)
      .filter((file) => !before.includes(file))
      .flatMap(
        (file): ReadonlyArray<ScriptCoverage> => JSON.parse(readFileSync(join(coverage, file), "utf8")).result
      )
  await writeCounts()
  await expect.poll(read).not.toEqual([])
  return read()
    .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) >= minCalls))
    .filter(({ url }) => url.startsWith(`file://${root}/src/`))
    .map(({ url }) => toFileName(url))
    .toSorted()
}
const countReads = () => listCalledFiles(reads, () => service.process.kill("SIGUSR2"))

/** Reads a resolved prompt `reads` times, one read after the other. The endpoint ignores the query. */
const readResolved = async (makeQuery: () => string): Promise<void> => {
  for (let index = 0; index < reads; index++) {
    const url = `${service.url}/api/v1/prompts/${greeting.id}/resolved${makeQuery()}`
    const response = await fetch(url, { headers: { authorization: `Bearer ${keys.active.plaintext}` } })
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
  { walk: "A cold read", makeQuery: () => `?read=${crypto.randomUUID()}` }
])(
  "docs/architecture.md lists exactly the files of src whose functions run for each read: $walk",
  async ({ walk, makeQuery }) => {
    const countFiles = async () => {
      await readResolved(() => "")
      await countReads()
      await readResolved(makeQuery)
      return countReads()
    }
    // The uncounted reads fill the caches. If a busy service pauses, it empties the caches, so a count can be wrong.
    await expect.poll(countFiles, { timeout: 20_000 }).toEqual(readWalk(walk))
  }
)

it("docs/architecture.md lists exactly the files of src whose functions run for each new file of an import", async () => {
  const directory = makeTestDirectory("walk-")
  mkdirSync(join(directory, "prompts"))
  for (let index = 0; index < 500; index++) writeFileSync(join(directory, `prompts/new-${index}.md`), "New")
  const args = [sourceProgram, "import", directory, "--workspace", archive.workspace.id]
  const run = () => runProcess(process.execPath, args, { env: { ...database.env, ...coverageEnv } })
  expect(await listCalledFiles(500, run)).toEqual(readWalk("An import of files"))
})
