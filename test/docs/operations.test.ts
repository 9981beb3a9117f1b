import { expect, it } from "vitest"
import { startApi } from "../api/startApi.ts"
import { readAlerts, readDashboardExpressions } from "../support/programs/monitoring.ts"
import { readTable } from "./markdown.ts"

const document = "docs/operations.md"

/** Returns the type, the labels and the description of each metric of a Prometheus text. */
const parseMetrics = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)\n(.*)$/gm)].map(
      ([, name, description, type, sample]) => {
        const labels = [...sample!.matchAll(/(\w+)="/g)].flatMap(([, label]) =>
          label === "le" ? [] : label!
        )
        return [name!, { type, labels, description }]
      }
    )
  )

const readNames = (cell: string): ReadonlyArray<string> =>
  [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!)

/** Returns the metrics in a PromQL expression: every name except functions, keywords, labels and strings. */
const listUsedMetrics = (expression: string): ReadonlyArray<string> =>
  expression
    .replace(/"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on) *\([^)]*\)/g, " ")
    .match(/\b[a-z][a-z0-9_:]*\b(?! *\()/g)!
    .filter((word) => !["and", "or", "unless", "offset"].includes(word))

// Nothing listens on port 1, so the metrics of Redis report failures.
const { service } = startApi([], { env: { REDIS_URL: "redis://127.0.0.1:1" } })

const documented = Object.fromEntries(
  readTable(document, "Metrics").map(([name, type, labels, description]) => [
    readNames(name!)[0]!,
    { type, labels: readNames(labels!), description }
  ])
)

it("docs/operations.md lists every metric of /metrics with its type, labels and description", async () => {
  const read = async () => (await fetch(`http://127.0.0.1:${service().metricsPort}/metrics`)).text()
  // Some metrics appear only after their first event.
  await expect.poll(async () => parseMetrics(await read())).toEqual(documented)
})

it("the alerts and the dashboard use only metrics that docs/operations.md lists", () => {
  const names = new Set(
    Object.entries(documented).flatMap(([name, { type }]) =>
      type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]
    )
  )
  for (const expression of [...readDashboardExpressions(), ...readAlerts().map(({ expr }) => expr)])
    expect([expression, ...listUsedMetrics(expression).filter((name) => !names.has(name))]).toEqual([
      expression
    ])
})

it("docs/operations.md explains every label of the metrics", () => {
  expect(new Set(readTable(document, "Labels").flatMap(([label]) => readNames(label!)))).toEqual(
    new Set(Object.values(documented).flatMap(({ labels }) => labels))
  )
})
