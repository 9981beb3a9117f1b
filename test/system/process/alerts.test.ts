import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { errors } from "../../../src/adapters/inbound/contract/Errors.ts"
import {
  alertsFile,
  promtool,
  readAlerts,
  readDashboard,
  readDashboardExpressions
} from "../../support/programs/monitoring.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const root = join(import.meta.dirname, "../../..")

/** Maps the name and labels of a series to its values in promtool's notation, with one sample per minute. */
type Series = Readonly<Record<string, string>>

const requests = (status: number, route = "/api/v1/prompts") =>
  `http_requests_total{route="${route}",status="${status}"}`
const durations = (le: string) => `http_request_duration_seconds_bucket{route="/api/v1/prompts",le="${le}"}`
const processDenials = 'rate_limit_denials_total{bucket="process"}'

/**
 * The metrics of a healthy instance over 150 minutes, with 600 successful requests per minute. Its 422 and 429
 * responses, and its 503 responses to /readyz, are not faults of the service.
 */
const healthy: Series = {
  build_info: "1x150",
  [requests(200)]: "0+600x150",
  [requests(429)]: "0+60x150",
  [requests(errors.ResolvedTooLarge.status, "/api/v1/prompts/:id/resolved")]: "0+60x150",
  [requests(503, "/readyz")]: "0+60x150",
  [durations("0.5")]: "0+600x150",
  [durations("1")]: "0+600x150",
  [durations("+Inf")]: "0+600x150",
  'rate_limit_denials_total{bucket="key"}': "0+60x150",
  [processDenials]: "0x150",
  rate_limiter_shared_up: "1x150",
  change_feed_up: "1x150",
  outage_responses_total: "0x150",
  outage_seconds_left: "300x150",
  'postgres_statements_running{pool="read"}': "2x150",
  'postgres_statements_max{pool="read"}': "8x150",
  nodejs_eventloop_lag_p99_seconds: "0.01x150",
  process_resident_memory_bytes: "3e8x150",
  process_start_time_seconds: "0x150"
}

/** For each alert, series that make the alert fire, and series that almost make the alert fire. */
const conditions: Readonly<Record<string, readonly [fires: Series, quiet: Series]>> = {
  PromptRetrievalUnavailable: [{ [requests(503)]: "0+8x150" }, { [requests(503)]: "0+7x150" }],
  PromptRetrievalOutage: [
    { outage_responses_total: "0x147 60 120 180" },
    { outage_responses_total: "0x100 600x50" }
  ],
  PromptRetrievalInternalErrors: [{ [requests(500)]: "_x145 1x5" }, { [requests(500)]: "_x100 1x50" }],
  PromptRetrievalSlow: [{ [durations("0.5")]: "0+590x150" }, { [durations("0.5")]: "0+596x150" }],
  PromptRetrievalPoolSaturated: [
    { 'postgres_statements_running{pool="read"}': "7x150" },
    { 'postgres_statements_running{pool="read"}': "6x150" }
  ],
  PromptRetrievalProcessLimitReached: [{ [processDenials]: "0+1x150" }, { [processDenials]: "5x150" }],
  PromptRetrievalSharedCounterDown: [
    { rate_limiter_shared_up: "1x140 0x10" },
    { rate_limiter_shared_up: "1x146 0x4" }
  ],
  PromptRetrievalChangeFeedDown: [{ change_feed_up: "1x140 0x10" }, { change_feed_up: "1x146 0x4" }],
  PromptRetrievalEventLoopLate: [
    { nodejs_eventloop_lag_p99_seconds: "0.11x150" },
    { nodejs_eventloop_lag_p99_seconds: "0.1x150" }
  ],
  PromptRetrievalMemoryGrows: [
    { process_resident_memory_bytes: "1.1e9+1e6x150" },
    { process_resident_memory_bytes: "1.1e9+1e5x150" }
  ],
  PromptRetrievalRestarts: [
    { process_start_time_seconds: "0x140 1x2 2x2 3x6" },
    { process_start_time_seconds: "0x140 1x2 2x8" }
  ]
}

const directory = makeTestDirectory("alerts-")

/** Returns series with the names that Prometheus gives them when it scrapes an instance of a job. */
const scrape = (series: Series, instance: string, job = "prompt-retrieval", prefix = "prompt_retrieval_") =>
  Object.entries({ ...healthy, ...series }).map(([name, values]) => {
    const [metric, labels = ""] = name.replace("}", "").split("{")
    const all = [`job="${job}"`, `instance="${instance}"`, ...(labels === "" ? [] : [labels])]
    return { series: `${prefix}${metric}{${all.join(",")}}`, values }
  })

/** Makes a test of promtool: after 150 minutes, only the alerts with these labels fire. */
const makeTest = (series: ReturnType<typeof scrape>, firing: ReadonlyArray<string>) => ({
  interval: "1m",
  input_series: series,
  promql_expr_test: [
    {
      expr: 'count by (alertname, instance) (ALERTS{alertstate="firing"})',
      eval_time: "150m",
      exp_samples: firing.map((labels) => ({ labels, value: 1 }))
    }
  ]
})

it("each alert fires for an instance of the job that meets the condition, but not for other jobs or if an instance almost meets the condition", () => {
  const instances = Object.entries(conditions).flatMap(([alert, [fires, quiet]]) => [
    ...scrape(fires, alert),
    ...scrape(quiet, `${alert}, almost`),
    ...scrape(fires, `${alert}, another job`, "another"),
    ...scrape(fires, `${alert}, another program`, "another", "")
  ])
  const firing = Object.keys(conditions).map((alert) => `{alertname="${alert}",instance="${alert}"}`)
  const tests = [
    makeTest([...scrape({}, "healthy"), ...instances], firing),
    makeTest(scrape({}, "healthy", "another"), ['{alertname="PromptRetrievalGone"}'])
  ]
  const file = join(directory, "test.yml")
  writeFileSync(file, JSON.stringify({ rule_files: [alertsFile], evaluation_interval: "1m", tests }))
  const { code, output } = promtool(["test", "rules", file])
  expect(code, output).toBe(0)
})

describe("deploy/prometheus-alerts.yml", () => {
  const alerts = readAlerts()

  it("every alert has a tested condition, and its runbook_url leads to the section of the alert in docs/operations.md", () => {
    expect(alerts.map(({ alert }) => alert)).toEqual(["PromptRetrievalGone", ...Object.keys(conditions)])
    const operations = readFileSync(join(root, "docs/operations.md"), "utf8")
    for (const { alert, annotations } of alerts) {
      const url = `https://example.com/prompt-retrieval/docs/operations.md#${alert.toLowerCase()}`
      expect(annotations.runbook_url).toBe(url)
      expect(operations).toContain(`\n### ${alert}\n`)
    }
  })
})

describe("deploy/grafana-dashboard.json", () => {
  const { panels } = readDashboard()

  it("every selector in deploy/grafana-dashboard.json selects the job and the instance", () => {
    const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    expect(expressions.length).toBeGreaterThan(5)
    for (const expression of expressions)
      for (const [selector] of expression.matchAll(/prompt_retrieval_\w+(\{[^}]*\})?/g))
        expect(selector).toContain('{job=~"$job",instance=~"$instance"')
  })

  it("deploy/grafana-dashboard.json has only expressions that Prometheus accepts", () => {
    const file = join(directory, "dashboard.yml")
    const rules = readDashboardExpressions().map((expr, n) => ({ record: `panel:${n}`, expr }))
    writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules }] }))
    const { code, output } = promtool(["check", "rules", file])
    expect(code, output).toBe(0)
  })
})
