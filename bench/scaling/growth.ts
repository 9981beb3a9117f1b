/** Measures reads with more workspaces, and with more prompts in one workspace. */
import { median } from "../load.ts"
import { eachOnce } from "../requests.ts"
import { type Context, connections, drawRequests, type Service, tenants } from "./context.ts"
import { type LoadCost, summarizeCosts } from "./loadCost.ts"
import {
  readPage,
  readPrompt,
  type TenantRequest,
  type Tenants,
  toStream,
  withoutCache,
  workspaceId
} from "./tenants.ts"

export interface WorkspacesRow {
  readonly workspaces: number
  /** Reads of one caller in which neither the key nor the prompt is cached. */
  readonly firstReads: LoadCost
  /** Requests over all workspaces by Zipf's law, and the share that was served from the response cache. */
  readonly mixed: LoadCost
  readonly hits: number
  /** The resident memory of the process in MiB. */
  readonly memory: number
  /** The size of the database in MiB. */
  readonly database: number
}

export interface PromptsRow {
  readonly prompts: number
  /** Reads of one caller in which no response is cached. */
  readonly firstReads: LoadCost
  /** The median times of list pages in milliseconds: when the total is cached, and after an edit. */
  readonly firstPage: number
  readonly lastPage: number
  readonly firstPageAfterEdit: number
  readonly lastPageAfterEdit: number
}

/** The number of measurements of each list page in one round. */
const pagesPerRound = 5
const perPage = 20

/** Measures reads of different prompts over one connection, after all entries were removed from the caches. */
const measureFirstReads = async (
  context: Context,
  service: Service,
  makeRequests: (round: number) => ReadonlyArray<TenantRequest>
): Promise<LoadCost> => {
  const rounds: Array<LoadCost> = []
  for (let round = 0; round < context.sizes.rounds; round++) {
    await context.invalidate()
    const stream = eachOnce(toStream(makeRequests(round), 1))
    rounds.push(await context.measure([{ service, stream }], [context.primary]))
  }
  return summarizeCosts(rounds)
}

/** Returns numbers from 1 to `size` at equal distances, different ones in each round as far as possible. */
const spread = (count: number, size: number, round: number): ReadonlyArray<number> => {
  const distance = Math.floor(size / count)
  return Array.from({ length: count }, (_, index) => 1 + index * distance + (round % distance))
}

const warmUp = async ({ measure, sizes }: Context, service: Service): Promise<void> => {
  const requests = drawRequests(sizes.warmUpReads, 1_000, 0).map(withoutCache)
  await measure([{ service, stream: eachOnce(toStream(requests, connections)) }])
}

const countLookups = async (service: Service) => {
  const read = (result: string) =>
    service.readMetric(`cache_lookups_total{cache="responses",result="${result}"}`)
  const [hit, miss, drop] = [await read("hit"), await read("miss"), await read("drop")]
  return { hits: hit, all: hit + miss + drop }
}

/** Sends requests by Zipf's law to fill the caches, and then measures the same number of other requests. */
const measureMixed = async (context: Context, service: Service, workspaces: number) => {
  const { measure, primary, sizes } = context
  const makeLoad = (seed: number) => ({
    service,
    stream: eachOnce(toStream(drawRequests(sizes.mixedReads, workspaces, seed), connections))
  })
  await measure([makeLoad(1)])
  const before = await countLookups(service)
  const mixed = await measure([makeLoad(2)], [primary])
  const after = await countLookups(service)
  return { mixed, hits: (after.hits - before.hits) / (after.all - before.all) }
}

/** Measures a new process with each number of workspaces. */
export const measureWorkspaces = async (context: Context): Promise<ReadonlyArray<WorkspacesRow>> => {
  const { load, sizes, sql, startService } = context
  const rows: Array<WorkspacesRow> = []
  for (const workspaces of sizes.workspaces) {
    await load(tenants, workspaces)
    const service = await startService()
    await warmUp(context, service)
    const firstReads = await measureFirstReads(context, service, (round) =>
      spread(sizes.loneReads, workspaces, round).map((tenant) => readPrompt(tenants, tenant))
    )
    const { mixed, hits } = await measureMixed(context, service, workspaces)
    const [size] = await sql<[{ bytes: string }]>`select pg_database_size(current_database())::text as bytes`
    rows.push({
      workspaces,
      firstReads,
      mixed,
      hits,
      memory: await service.memory(),
      database: Number(size.bytes) / 1024 ** 2
    })
    await service.stop()
  }
  return rows
}

const warmUpPages = async (
  { measure, sizes }: Context,
  service: Service,
  workspace: Tenants
): Promise<void> => {
  const pages = Math.ceil(workspace.promptsEach / perPage)
  const requests = Array.from({ length: sizes.warmUpReads }, (_, index) =>
    withoutCache(readPage(workspace, 1, 1 + (index % pages), perPage))
  )
  await measure([{ service, stream: eachOnce(toStream(requests, connections)) }])
}

/** Measures list pages of a workspace over one connection. */
const measurePages = async (
  { invalidate, measure, sizes }: Context,
  service: Service,
  workspace: Tenants
): Promise<Omit<PromptsRow, "prompts" | "firstReads">> => {
  const id = workspaceId(workspace, 1)
  const read = async (number: number): Promise<number> => {
    const request = withoutCache(readPage(workspace, 1, number, perPage))
    const { p50 } = await measure([{ service, stream: eachOnce(toStream([request], 1)) }])
    return p50
  }
  const last = Math.ceil(workspace.promptsEach / perPage)
  const times = {
    firstPageAfterEdit: [] as Array<number>,
    firstPage: [] as Array<number>,
    lastPageAfterEdit: [] as Array<number>,
    lastPage: [] as Array<number>
  }
  for (let sample = 0; sample < pagesPerRound * sizes.rounds; sample++) {
    await invalidate(id)
    times.firstPageAfterEdit.push(await read(1))
    times.firstPage.push(await read(1))
    await invalidate(id)
    times.lastPageAfterEdit.push(await read(last))
    times.lastPage.push(await read(last))
  }
  return {
    firstPage: median(times.firstPage),
    lastPage: median(times.lastPage),
    firstPageAfterEdit: median(times.firstPageAfterEdit),
    lastPageAfterEdit: median(times.lastPageAfterEdit)
  }
}

/** Measures one process with one workspace of each size, beside many small ones. */
export const measurePrompts = async (context: Context): Promise<ReadonlyArray<PromptsRow>> => {
  const { load, sizes, startService } = context
  await load(tenants, sizes.neighbors)
  const service = await startService()
  await warmUp(context, service)
  const rows: Array<PromptsRow> = []
  for (const [index, prompts] of sizes.prompts.entries()) {
    const workspace: Tenants = { group: 2 + index, promptsEach: prompts }
    await load(workspace, 1)
    const firstReads = await measureFirstReads(context, service, (round) =>
      spread(sizes.loneReads, prompts, round).map((prompt) => readPrompt(workspace, 1, prompt))
    )
    if (index === 0) await warmUpPages(context, service, workspace)
    rows.push({ prompts, firstReads, ...(await measurePages(context, service, workspace)) })
  }
  await service.stop()
  return rows
}
