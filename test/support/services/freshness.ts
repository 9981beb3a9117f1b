import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { sample } from "../archives.ts"
import { connectTo } from "../database.ts"
import { freePort } from "../ports.ts"
import { freshDatabase, proxyTo, toDatabaseUrl } from "../postgres.ts"
import { type Service, startService } from "../service.ts"

/** A running service whose metrics a test reads. */
export interface MeteredService extends Service {
  /** Returns the current value of one series, such as `prompt_retrieval_change_feed_up`. */
  readonly metric: (name: string) => Promise<number>
}

const startMetered = (url: string): Effect.Effect<MeteredService, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const port = await freePort()
      const service = await startService({
        DATABASE_URL: url,
        METRICS_PORT: String(port),
        // In an outage, responses may be older than the tests of freshness allow.
        OUTAGE_MAX_AGE: "0 seconds",
        RATE_LIMIT_PER_KEY: "100000000",
        RATE_LIMIT_PER_PROCESS: "100000000",
        LOG_LEVEL: "Warn"
      })
      const metric = async (name: string) => {
        const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
        const line = text.split("\n").find((line) => line.startsWith(`${name} `))
        return Number(line?.slice(name.length + 1))
      }
      return { ...service, metric }
    }),
    (service) => Effect.promise(() => service.stop())
  )

/** The series that counts the responses served from the response cache. */
export const responseCacheHits = 'prompt_retrieval_cache_lookups_total{cache="responses",result="hit"}'

/** Waits until the change feed of a service is up, so that the service caches. */
export const waitUntilCaching = async (service: MeteredService): Promise<void> => {
  const started = performance.now()
  while ((await service.metric("prompt_retrieval_change_feed_up")) !== 1) {
    if (performance.now() - started > 15_000) throw new Error(`no caching: ${service.output()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Starts two services of one database with a tenant: `near` connects directly, `far` through a proxy. */
export const twoServices = Effect.gen(function* () {
  const database = yield* freshDatabase
  const proxy = yield* proxyTo(database)
  const near = yield* startMetered(toDatabaseUrl(database))
  const far = yield* startMetered(proxy.url)
  const connected = yield* connectTo({ DATABASE_URL: toDatabaseUrl(database) })
  const tenant = sample()
  yield* Effect.promise(() => connected.importArchive(tenant.archive))
  yield* Effect.promise(() => Promise.all([near, far].map(waitUntilCaching)))
  return { database, proxy, near, far, tenant, sql: connected.sql, startMetered }
})
export type TwoServices = Effect.Success<typeof twoServices>

/** A change made in SQL, not through the service, and the response to a read after it. */
export interface Change {
  readonly name: string
  readonly sql: string
  readonly status: number
  readonly title?: string
}

/** Lists every kind of change that takes effect immediately, each followed by the change that reverts it. */
export const listChanges = (
  { archive, keys }: TwoServices["tenant"],
  round: number
): ReadonlyArray<Change> => {
  const id = archive.workspace.id
  const { stored } = keys.active
  const revert = (name: string, sql: string): Change => ({ name, sql, status: 200 })
  const edit: Change = {
    name: "an edit",
    sql: `update prompts set title = 'Round ${round}' where id = '${archive.prompts[0]!.id}'`,
    status: 200,
    title: `Round ${round}`
  }
  return [
    edit,
    {
      name: "a revocation",
      sql: `update api_keys set revoked_at = now() where id = '${stored.id}'`,
      status: 401
    },
    revert("a revocation undone", `update api_keys set revoked_at = null where id = '${stored.id}'`),
    {
      name: "a required password reset",
      sql: `update users set must_reset_password = true where id = '${stored.created_by}'`,
      status: 401
    },
    revert(
      "a password reset done",
      `update users set must_reset_password = false where id = '${stored.created_by}'`
    ),
    { name: "a free tier", sql: `update workspaces set tier = 'free' where id = '${id}'`, status: 403 },
    revert("a paid tier", `update workspaces set tier = 'solo' where id = '${id}'`),
    {
      name: "billing disputed",
      sql: `update workspaces set billing_status = 'disputed' where id = '${id}'`,
      status: 402
    },
    revert("billing active", `update workspaces set billing_status = 'active' where id = '${id}'`)
  ]
}

/** Reads the prompt that `listChanges` edits. */
export const readPrompt = async (service: Service, { archive, keys }: TwoServices["tenant"]) => {
  const response = await fetch(`${service.url}/api/v1/prompts/${archive.prompts[0]!.id}`, {
    headers: { authorization: `Bearer ${keys.active.plaintext}` }
  })
  const { data } = (await response.json()) as { readonly data?: { readonly title: string } }
  return { status: response.status, title: data?.title }
}

/**
 * Makes a change once each service has cached its response, and returns how many milliseconds after the commit the
 * last request with an outdated response began; 0 without outdated responses.
 */
export const measureStaleness = async (two: TwoServices, change: Change): Promise<number> => {
  const services = [two.near, two.far]
  for (const service of services) for (let i = 0; i < 2; i++) await readPrompt(service, two.tenant)
  await two.sql(change.sql)
  const committedAt = performance.now()
  const staleness = services.map(async (service) => {
    for (let last = 0; ; ) {
      const startedAt = performance.now()
      const { status, title } = await readPrompt(service, two.tenant)
      if (status === change.status && (change.title === undefined || title === change.title)) return last
      last = startedAt - committedAt
      if (last > 10_000) throw new Error(`${change.name} was not seen by ${service.url}`)
    }
  })
  return Math.max(...(await Promise.all(staleness)))
}

/** Returns the value below which a share, from 0 to 1, of all values lie. */
export const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))]!
