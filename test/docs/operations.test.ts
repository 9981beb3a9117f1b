import { spawn } from "node:child_process"
import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { makeResources, postgres } from "../support/database.ts"
import { freePort } from "../support/ports.ts"
import { readAlerts, readDashboardExpressions } from "../support/programs/monitoring.ts"
import { currentProgram, run, type Service, startService } from "../support/service.ts"
import { readTable } from "./markdown.ts"

const document = "docs/operations.md"

describe("docs/operations.md, Exit codes", () => {
  const unreachable = async () => ({ DATABASE_URL: `postgres://postgres@127.0.0.1:${await freePort()}/test` })

  /** Runs a command that connects to a database that never responds, and then sends SIGTERM. Returns the exit code. */
  const interruptCommand = async () => {
    const server = createServer()
    await once(server.listen(0, "127.0.0.1"), "listening")
    const connected = once(server, "connection")
    const { port } = server.address() as AddressInfo
    const child = spawn(process.execPath, [currentProgram, "workspaces", "list"], {
      env: { PATH: process.env.PATH, DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/test` },
      stdio: "ignore"
    })
    const [socket] = await connected
    child.kill("SIGTERM")
    const [code] = await once(child, "close")
    socket.destroy()
    server.close()
    return code
  }

  /** Sends SIGTERM to a service, and a second SIGTERM while the service still accepts requests. */
  const stopTwice = async () => {
    const service = await startService({ ...(await unreachable()), SHUTDOWN_GRACE: "1 minute" }, "/healthz")
    service.process.kill("SIGTERM")
    await vi.waitFor(() => expect(service.output()).toContain("Shutting down"), 30_000)
    // The service treats two signals within 250 ms as one signal.
    await setTimeout(300)
    return service.stop()
  }

  const situations: ReadonlyArray<[code: number, situation: string, exit: () => Promise<number | null>]> = [
    [0, "a command that succeeds", async () => (await run(["--version"], {})).code],
    [
      0,
      "serve after SIGTERM",
      async () => {
        const service = await startService(await unreachable(), "/healthz")
        return service.stop()
      }
    ],
    [1, "a command that fails", async () => (await run(["workspaces", "list"], await unreachable())).code],
    [1, "serve with an invalid variable", async () => (await run(["serve"], { PORT: "x" })).code],
    [2, "a wrong command line", async () => (await run(["keys", "issue", "--workspace", "1"], {})).code],
    [130, "a command that SIGTERM interrupts", interruptCommand],
    [143, "a second SIGTERM", stopTwice]
  ]

  it.each(situations)("%i is the exit code of %s", async (code, _, exit) => {
    expect(await exit()).toBe(code)
  })

  it("docs/operations.md lists exactly the exit codes that the tests above produce", () => {
    expect(readTable(document, "Exit codes").map(([code]) => Number(code))).toEqual([
      ...new Set(situations.map(([code]) => code))
    ])
  })
})

interface Metric {
  readonly name: string
  readonly type: string
  readonly labels: ReadonlyArray<string>
  readonly description: string
}

/** Returns the metrics of a Prometheus text, sorted by name. */
const parseMetrics = (text: string): ReadonlyArray<Metric> =>
  [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)\n(.*)$/gm)]
    .map(([, name, description, type, sample]) => ({
      name: name!,
      type: type!,
      labels: [...sample!.matchAll(/(\w+)="/g)].map(([, label]) => label!).filter((label) => label !== "le"),
      description: description!
    }))
    .sort(compareNames)

const compareNames = (a: Metric, b: Metric): number => (a.name < b.name ? -1 : 1)

const readNames = (cell: string): ReadonlyArray<string> =>
  [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!)

/** Returns the metrics in a PromQL expression: every name except functions, keywords, labels and strings. */
const listUsedMetrics = (expression: string): ReadonlyArray<string> =>
  expression
    .replace(/"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on) *\([^)]*\)/g, " ")
    .match(/\b[a-z][a-z0-9_:]*\b(?! *\()/g)!
    .filter((word) => !["and", "or", "unless", "offset"].includes(word))

describe("docs/operations.md, Metrics", () => {
  const resources = makeResources()
  let metricsPort: number
  let service: Service

  beforeAll(async () => {
    metricsPort = await freePort()
    service = await startService({
      ...(await resources.acquire(postgres.acquire)),
      METRICS_PORT: String(metricsPort),
      REDIS_URL: `redis://127.0.0.1:${await freePort()}`
    })
  })
  afterAll(async () => {
    await service?.stop()
    await resources.release()
  })

  const readMetricTable = (heading: string) =>
    readTable(document, heading).map(([name, type, labels, description]) => ({
      name: readNames(name!)[0]!,
      type: type!,
      labels: readNames(labels!),
      description: description!
    }))
  const documented = readMetricTable("Metrics")

  it("docs/operations.md lists every metric of /metrics with its type, labels and description", async () => {
    const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
    expect(parseMetrics(await response.text())).toEqual(documented.toSorted(compareNames))
  })

  it("docs/operations.md lists every metric that only a service with replicas has", async () => {
    const port = await freePort()
    const unreachable = `postgres://postgres@127.0.0.1:${await freePort()}/test`
    const env = { DATABASE_URL: unreachable, DATABASE_REPLICA_URL: unreachable, METRICS_PORT: String(port) }
    const replicated = await startService(env, "/healthz")
    try {
      const metrics = parseMetrics(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text())
      expect(metrics.filter(({ name }) => name.startsWith("prompt_retrieval_replica_"))).toEqual(
        readMetricTable("Metrics of replicas").toSorted(compareNames)
      )
    } finally {
      await replicated.stop()
    }
  })

  it("alerts and dashboard use only metrics that docs/operations.md lists", () => {
    const names = new Set(
      [...documented, ...readMetricTable("Metrics of replicas")].flatMap(({ name, type }) =>
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
      new Set(documented.flatMap(({ labels }) => labels))
    )
  })
})
