import { join } from "node:path"
import * as Effect from "effect/Effect"
import { beforeAll, expect, it, vi } from "vitest"
import { scenarios } from "../../bench/scenarios.ts"
import { serveVariables, type Variable, variables } from "../../src/adapters/inbound/cli/input/Environment.ts"
import { readConfig } from "../../src/runtime/config/Config.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { freePort } from "../support/network/ports.ts"
import { runService, type Service, sourceProgram, startService } from "../support/services/startService.ts"
import { makeTestDirectory } from "../support/testDirectory.ts"
import { readCodeBlocks, readDocument, readTable, root } from "./markdown.ts"

const document = "README.md"

const database = makeTestDatabase()
const start = (env: Readonly<Record<string, string>>) =>
  startService(env, "/readyz", ["--demo"], sourceProgram)
let service: Service
/** The curl command that the first start prints. */
let printed: string

beforeAll(async () => {
  await database.acquire(runService(() => start(database.env)))
  const env = { DATA_DIR: makeTestDirectory("readme-"), PORT: String(await freePort()) }
  const first = await start(env)
  printed = (await vi.waitUntil(() => /^ *(curl .*)\n/m.exec(first.output()), { timeout: 20_000 }))[1]!
  await first.stop()
  service = await database.acquire(runService(() => start(env)))
})

const response = readCodeBlocks("docs/http-api.md").find(({ language }) => language === "json")!.code
const documented = readCodeBlocks(document)
  .find(({ code }) => code.startsWith("curl "))!
  .code.trim()

it("README.md has the curl command that the first start prints", () => {
  expect(printed.replace(/key_live_[0-9a-f]{64}/, "KEY").replace(service.url, "http://127.0.0.1:3000")).toBe(
    documented
  )
})

it("docs/http-api.md begins with the response to the curl command in README.md", async () => {
  const [, name, value, url] = /^curl -H '(\S+): (.+)' (\S+)$/.exec(printed)!
  const received = await fetch(url!, { headers: { [name!]: value! } })
  expect(await received.json()).toEqual(JSON.parse(response))
})

it("serve --demo prints how to issue a key if the embedded database has a workspace, and creates no workspace on a PostgreSQL server", async () => {
  await expect
    .poll(() => service.output(), { timeout: 20_000 })
    .toMatch(/^To issue a key: npx node src\/main\.ts keys issue --workspace [0-9a-f-]{36} --user EMAIL$/m)
  // The service on PostgreSQL started first, so it would have created a demo workspace by now.
  expect(await database.sql("select from workspaces")).toEqual([])
})

// To update the table after a change to a variable: npx vitest run test/docs/readme.test.ts -u
it("README.md lists every environment variable with the default and the description in Environment.ts", async () => {
  const rows: ReadonlyArray<readonly [string, Variable]> = Object.entries(variables)
  const table = rows.map(([name, { description, defaultValue, document }]) => {
    const value = defaultValue === undefined ? "" : `\`${defaultValue}\``
    const link = document === undefined ? "" : ` ([more](${document}))`
    return `| \`${name}\` | ${value} | ${description}${link} |\n`
  })
  const generated = readDocument(document).replace(
    /(?<=^\| Variable \| Default \| \|\n\|---\|---\|---\|\n)(\|.*\n)*/m,
    () => table.join("")
  )
  await expect(generated).toMatchFileSnapshot(join(root, document))
})

it("readConfig reads exactly the environment variables of serve", () => {
  const names = new Set<string>()
  const env = new Proxy({}, { get: (_, name) => void names.add(String(name)) })
  Effect.runSync(readConfig(env))
  expect([...names].sort()).toEqual([...serveVariables].sort())
})

it("the commands under Benchmarks in README.md run existing groups of scenarios", () => {
  const groups = new Set(scenarios.map(({ group }) => group))
  for (const [, , , , command] of readTable(document, "Benchmarks")) {
    const [, group] = /^`npm run bench -- --only (\w+)`$/.exec(command!) ?? []
    expect([...groups]).toContain(group)
  }
})
