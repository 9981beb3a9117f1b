import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { sample } from "./archives.ts"
import { connectTo } from "./database.ts"
import { freePort } from "./ports.ts"
import { freshDatabase, proxyTo, urlOf } from "./postgres.ts"
import { type Service, startService } from "./service.ts"

/** A service whose caches can be looked into. */
export interface Watched extends Service {
  /** A number of its metrics. */
  readonly metric: (name: string) => Promise<number>
}

const startWatched = (url: string): Effect.Effect<Watched, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const port = await freePort()
      const service = await startService({
        DATABASE_URL: url,
        METRICS_PORT: String(port),
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

/** How many answers were sent from what was ready. */
export const readyHits = 'cache_lookups_total{cache="responses",result="hit"}'

/** Until a service hears of changes, and so caches. */
export const untilCaching = async (service: Watched): Promise<void> => {
  const started = performance.now()
  while ((await service.metric("change_feed_up")) !== 1) {
    if (performance.now() - started > 15_000) throw new Error(`no caching: ${service.output()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** One database with a tenant, and two services of it: `near` straight, `far` through a proxy. */
export const twoServices = Effect.gen(function* () {
  const database = yield* freshDatabase
  const proxy = yield* proxyTo(database)
  const near = yield* startWatched(urlOf(database))
  const far = yield* startWatched(proxy.url)
  const connected = yield* connectTo({ DATABASE_URL: urlOf(database) })
  const tenant = sample()
  yield* Effect.promise(() => connected.importArchive(tenant.archive))
  yield* Effect.promise(() => Promise.all([near, far].map(untilCaching)))
  return { database, proxy, near, far, tenant, sql: connected.sql, startWatched }
})
export type TwoServices = Effect.Success<typeof twoServices>

/** A state that a tenant can be in, made in SQL past the service, and how a read answers in it. */
export interface Change {
  readonly name: string
  readonly sql: string
  readonly status: number
  readonly title?: string
}

/** Every kind of change that has to be seen at once, each followed by the way back. */
export const changesOf = ({ archive, keys }: TwoServices["tenant"], round: number): ReadonlyArray<Change> => {
  const id = archive.workspace.id
  const { stored } = keys.active
  const back = (name: string, sql: string): Change => ({ name, sql, status: 200 })
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
    back("its end", `update api_keys set revoked_at = null where id = '${stored.id}'`),
    {
      name: "an owner's reset",
      sql: `update users set must_reset_password = true where id = '${stored.created_by}'`,
      status: 401
    },
    back("its end", `update users set must_reset_password = false where id = '${stored.created_by}'`),
    { name: "a tier", sql: `update workspaces set tier = 'free' where id = '${id}'`, status: 403 },
    back("its end", `update workspaces set tier = 'solo' where id = '${id}'`),
    {
      name: "billing",
      sql: `update workspaces set billing_status = 'disputed' where id = '${id}'`,
      status: 402
    },
    back("its end", `update workspaces set billing_status = 'active' where id = '${id}'`)
  ]
}

/** Reads the prompt that `changesOf` edits. */
export const readPrompt = async (service: Service, { archive, keys }: TwoServices["tenant"]) => {
  const response = await fetch(`${service.url}/api/v1/prompts/${archive.prompts[0]!.id}`, {
    headers: { authorization: `Bearer ${keys.active.plaintext}` }
  })
  const { data } = (await response.json()) as { readonly data?: { readonly title: string } }
  return { status: response.status, title: data?.title }
}

/**
 * Makes a change once it is sure that each service answers from what it has ready, where it answers with data, and
 * gives how long after its commit the last answer of before it began, in milliseconds; 0 where there was none.
 */
export const timeToSee = async (two: TwoServices, change: Change): Promise<number> => {
  const services = [two.near, two.far]
  for (const service of services) for (let i = 0; i < 2; i++) await readPrompt(service, two.tenant)
  await two.sql(change.sql)
  const committed = performance.now()
  const seen = services.map(async (service) => {
    for (let last = 0; ; ) {
      const began = performance.now()
      const { status, title } = await readPrompt(service, two.tenant)
      if (status === change.status && (change.title === undefined || title === change.title)) return last
      last = began - committed
      if (last > 10_000) throw new Error(`${change.name} was not seen by ${service.url}`)
    }
  })
  return Math.max(...(await Promise.all(seen)))
}

/** The value below which a part, from 0 to 1, of all values lie. */
export const quantile = (values: ReadonlyArray<number>, part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(part * values.length))]!
