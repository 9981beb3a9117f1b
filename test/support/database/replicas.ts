import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { key, sample } from "../archives.ts"
import { type Cluster, freshCluster, makeStandby } from "./cluster.ts"
import { connectTo } from "../database.ts"
import { readMetric } from "../services/metrics.ts"
import { type Load, startLoad } from "../clients/load.ts"
import { type Reply, read } from "../clients/read.ts"
import { uncachedPath } from "../clients/requests.ts"
import { parseLogLines } from "../logLines.ts"
import { freePort } from "../ports.ts"
import { run, type Service, unlimited } from "../service.ts"
import { startObservedService } from "../services/startObservedService.ts"

/** A service with replicas. Tests read the metrics of the service. */
export interface ReplicatedService extends Service {
  /** Returns the current value of a series. `name` is the name of the series without `prompt_retrieval_`. */
  readonly metric: (name: string) => Promise<number>
}

/** The settings of a standby that applies a commit only when the given time has passed since the commit. */
export const delayedBy = (delay: string): ReadonlyArray<string> => [`recovery_min_apply_delay=${delay}`]

/** Returns a URL that names the hosts of several clusters. */
export const joinHosts = (clusters: ReadonlyArray<Cluster>): string => {
  const hosts = clusters.map(({ url }) => new URL(url).host).join(",")
  return clusters[0]!.url.replace(/@[^/]+/, `@${hosts}`)
}

/**
 * Starts a primary with the archives of these tenants, and a standby for each list of settings. The standbys
 * also contain the archives.
 */
export const startClusters = Effect.fnUntraced(function* (
  tenants: ReadonlyArray<{ readonly archive: Archive }>,
  standbySettings: ReadonlyArray<ReadonlyArray<string>> = [[]],
  primarySettings: ReadonlyArray<string> = []
) {
  const primary = yield* freshCluster
  yield* Effect.promise(() => primary.start(primarySettings))
  const env = { DATABASE_URL: primary.url }
  const { code, stderr } = yield* Effect.promise(() => run(["migrate"], env))
  if (code !== 0) throw new Error(stderr)
  yield* Effect.scoped(
    Effect.flatMap(connectTo(env), ({ importArchive }) =>
      Effect.forEach(tenants, ({ archive }) => Effect.promise(() => importArchive(archive)))
    )
  )
  const standbys: Array<Cluster> = []
  for (const settings of standbySettings) {
    const standby = yield* makeStandby(primary)
    yield* Effect.promise(() => standby.start(settings))
    standbys.push(standby)
  }
  return { primary, standbys }
})

/** Starts a service on a primary and its standbys. */
export const startReplicatedService = async (
  primary: Cluster,
  standbys: ReadonlyArray<Cluster>,
  env: Readonly<Record<string, string>> = {}
): Promise<ReplicatedService> => {
  const metricsPort = String(await freePort())
  const service = await startObservedService({
    DATABASE_URL: primary.url,
    DATABASE_REPLICA_URL: joinHosts(standbys),
    METRICS_PORT: metricsPort,
    // In an outage, known responses would hide the responses of the replicas.
    OUTAGE_MAX_AGE: "0s",
    ...unlimited,
    ...env
  })
  return { ...service, metric: (name) => readMetric(metricsPort, `prompt_retrieval_${name}`) }
}

export const replicaReads = 'replica_reads_total{target="replica"}'
export const primaryReads = 'replica_reads_total{target="primary"}'

/** Returns the name of the series of a gauge for one standby. */
export const gaugeOf = (gauge: "up" | "lag_seconds", { url }: Cluster): string =>
  `replica_${gauge}{replica="${new URL(url).host}"}`

/** Reads a path so that no cached response matches. */
export const readUncached = (service: Service, path: string, plaintext: string): Promise<Reply> =>
  read(service.url + uncachedPath(path), plaintext)

/** Makes a workspace with some prompts and keys. */
export const makeReplicaTenant = (keyCount = 1) => {
  const { archive, keys } = sample()
  const further = Array.from({ length: keyCount }, () => key(archive.workspace.id, archive.users[0]!))
  return {
    archive: { ...archive, api_keys: [...archive.api_keys, ...further.map(({ stored }) => stored)] },
    active: keys.active,
    further,
    path: `/api/v1/prompts/${archive.prompts[0]!.id}`
  }
}
export type ReplicaTenant = ReturnType<typeof makeReplicaTenant>

/** Waits until a replica runs the reads of a tenant. */
export const waitUntilOnReplica = async (
  service: ReplicatedService,
  { path, active }: Pick<ReplicaTenant, "path" | "active">
): Promise<void> => {
  const started = performance.now()
  for (;;) {
    const before = [await service.metric(replicaReads), await service.metric(primaryReads)]
    for (let i = 0; i < 5; i++) {
      const { status } = await readUncached(service, path, active.plaintext)
      if (status !== 200) throw new Error(`${path}: ${status}`)
    }
    const after = [await service.metric(replicaReads), await service.metric(primaryReads)]
    if (after[0]! - before[0]! >= 5 && after[1] === before[1]) return
    if (performance.now() - started > 40_000)
      throw new Error(`no reads of replicas: ${before} ${after} ${listReplicaLines(service).join("; ")}`)
    await setTimeout(100)
  }
}

/** Returns the messages of the log lines that name replicas or the primary, in order. */
export const listReplicaLines = (service: Service): ReadonlyArray<string> =>
  parseLogLines(service.output())
    .map(({ msg }) => msg)
    .filter((message) => /^(Replica|Primary) /.test(message))

/** A path that the clients of `startReadLoad` read, and the plaintext of the key for these reads. */
export interface ReadTarget {
  readonly path: string
  readonly plaintext: string
  readonly onReply?: (reply: Reply) => void
}

/** Starts clients that read the targets in turn. No cached response matches their requests. */
export const startReadLoad = (service: Service, targets: ReadonlyArray<ReadTarget>, clients: number): Load =>
  startLoad({
    next: (n) => {
      const { path, plaintext, onReply } = targets[n % targets.length]!
      return { url: service.url + uncachedPath(path), key: plaintext, onReply }
    },
    clients,
    pauseMs: 2
  })
