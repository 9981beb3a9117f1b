import { expect, it } from "vitest"
import { makeEdgeRows } from "../../bench/scaling/edge.ts"
import { processCounts, requestKinds } from "../../bench/scaling/instances.ts"
import type { Report } from "../../bench/scaling/report.ts"
import { makeTables, replaceTables } from "../../bench/scaling/tables.ts"
import { readDocument } from "./markdown.ts"

const text = readDocument("docs/scaling.md")
const tableNames = [...text.matchAll(/^<!-- table: (\w+) -->$/gm)].map(([, name]) => name!)

const cost = { requestsPerSecond: 1, p50: 1, p99: 1, serviceCpu: 1, databaseCpu: [1, 1] }
const report: Report = {
  at: "2026-01-01T00:00:00.000Z",
  commit: "1",
  node: "24",
  database: "PostgreSQL",
  processors: "2",
  cores: 2,
  command: "npm run bench",
  took_seconds: 1,
  processes: requestKinds.flatMap((requests) =>
    processCounts.map((processes) => ({ ...cost, requests, processes, steady: cost }))
  ),
  standby: requestKinds.flatMap((requests) =>
    [false, true].map((standby) => ({ ...cost, requests, standby, standbyReads: 1 }))
  ),
  workspaces: [{ workspaces: 1, firstReads: cost, mixed: cost, hits: 0.5, memory: 1, database: 1 }],
  prompts: [
    {
      prompts: 1,
      firstReads: cost,
      firstPage: 1,
      lastPage: 1,
      firstPageAfterEdit: 1,
      lastPageAfterEdit: 1
    }
  ],
  edge: makeEdgeRows()
}

it("the benchmark writes every table of docs/scaling.md, and changes nothing else", () => {
  const tables = makeTables(report)
  expect([...tables.keys()].toSorted()).toEqual(tableNames.toSorted())
  const written = replaceTables(text, tables)
  for (const table of tables.values()) expect(written).toContain(table)
  expect(replaceTables(written, tables)).toBe(written)
  const withoutTables = (document: string) => document.replaceAll(/^\n?\|.*\n/gm, "").replaceAll(/\n+/g, "\n")
  expect(withoutTables(written)).toBe(withoutTables(text))
})

it.each(tableNames)("the table %s of docs/scaling.md has rows", (name) => {
  const start = text.indexOf(`<!-- table: ${name} -->`)
  const table = text.slice(start, text.indexOf("<!-- end -->", start))
  expect(table.match(/^\|/gm)?.length).toBeGreaterThan(2)
})
