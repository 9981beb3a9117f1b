import { inspect, isDeepStrictEqual } from "node:util"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as HostKeys from "../adapters/outbound/host/HostKeyStore.ts"
import * as HostPrompts from "../adapters/outbound/host/HostPromptRepo.ts"
import * as Memory from "../adapters/outbound/memory/Memory.ts"
import { type PromptFilter, PromptRepo } from "../application/ports/PromptRepo.ts"
import { KeyStore } from "../application/ports/KeyStore.ts"
import type { KeyHash } from "../domain/ApiKey.ts"
import type { Page } from "../domain/Page.ts"
import { type PromptId, PromptType } from "../domain/Prompt.ts"
import type { Timestamp } from "../domain/Timestamp.ts"
import type { VersionNumber } from "../domain/Version.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import { importArchive } from "./importArchive.ts"
import { sampleArchives, type WorkspaceArchive } from "./sampleArchives.ts"

// A store of a host must return what the in-memory adapters return, which pass the contract tests of all adapters.

/** A read of a port, and what an error message calls it. */
interface Read<Port> {
  readonly name: string
  readonly args: ReadonlyArray<unknown>
  readonly run: (port: Port) => Effect.Effect<unknown, unknown>
}

/** Returns the outcome of a read: its result, its expected failure, or the message of its defect. */
const observe = (read: Effect.Effect<unknown, unknown>): Promise<unknown> =>
  Effect.runPromise(
    read.pipe(
      Effect.map((value) => ({ value })),
      Effect.catchCause((cause) => {
        const error = Cause.squash(cause)
        return Effect.succeed({ error: error instanceof Error ? error.message : error })
      })
    )
  )

const format = (value: unknown): string => inspect(value, { depth: 6, breakLength: 110 }).slice(0, 2_000)

/** Runs reads on two ports. Throws for the first read whose outcomes differ. */
const compare = async <Port>(store: Port, model: Port, reads: Iterable<Read<Port>>): Promise<void> => {
  for (const { name, args, run } of reads) {
    const [actual, expected] = await Promise.all([observe(run(store)), observe(run(model))])
    if (!isDeepStrictEqual(actual, expected)) {
      const call = `${name}(${args.map((arg) => JSON.stringify(arg)).join(", ")})`
      throw new Error(`${call}\nreturned ${format(actual)}\nexpected ${format(expected)}`)
    }
  }
}

const unknownId = "ffffffff-0000-4000-8000-000000000000"

/** Brands texts as ids or hashes. */
const brand = <Brand extends string>(texts: ReadonlyArray<string>) => texts as unknown as ReadonlyArray<Brand>

const pages: ReadonlyArray<Page> = [
  { page: 1, per_page: 100 },
  { page: 1, per_page: 1 },
  { page: 2, per_page: 3 },
  { page: 4, per_page: 3 },
  { page: 2 ** 40, per_page: 100 }
]

const withUndefined = <A>(values: ReadonlyArray<A>): ReadonlyArray<A | undefined> => [undefined, ...values]

/**
 * All combinations of folder (none, existing, unknown), tag (none, each, unknown, empty) and type (none, two
 * types).
 */
const makeFilters = ({ folders, tags }: WorkspaceArchive): ReadonlyArray<PromptFilter> =>
  withUndefined([folders[0]?.id, unknownId]).flatMap((folder_id) =>
    withUndefined([...tags.map(({ name }) => name), "no such tag", ""]).flatMap((tag) =>
      withUndefined(PromptType.literals.slice(0, 2)).map((type) => ({ folder_id, tag, type }) as PromptFilter)
    )
  )

const promptReads = function* (): Generator<Read<PromptRepo["Service"]>> {
  const read = <Name extends "list" | "get" | "getSource" | "listVersions" | "getVersion">(
    name: Name,
    ...args: Parameters<PromptRepo["Service"][Name]>
  ): Read<PromptRepo["Service"]> => ({
    name,
    args,
    run: (repo) =>
      (repo[name] as (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>)(...args)
  })
  const prompts = sampleArchives.flatMap(({ prompts }) => prompts)
  const cutoffs = withUndefined([
    ...new Set(prompts.flatMap(({ versions }) => versions.map((v) => v.created_at)))
  ])
  for (const workspace of brand<WorkspaceId>([
    ...sampleArchives.map(({ workspace }) => workspace.id),
    unknownId
  ])) {
    for (const filter of sampleArchives.flatMap(makeFilters)) {
      for (const page of pages) yield read("list", workspace, filter, page)
    }
    for (const id of brand<PromptId>([...prompts.map(({ id }) => id), unknownId])) {
      yield read("get", workspace, id)
      yield read("getSource", workspace, id)
      for (const oldest of cutoffs as ReadonlyArray<Timestamp | undefined>) {
        for (const page of pages) yield read("listVersions", workspace, id, oldest, page)
        for (const number of [1, 2, 3, 4] as ReadonlyArray<number> as ReadonlyArray<VersionNumber>) {
          yield read("getVersion", workspace, id, number, oldest)
        }
      }
    }
  }
}

const keyReads = function* (): Generator<Read<KeyStore["Service"]>> {
  const hashes = sampleArchives.flatMap(({ api_keys }) => api_keys.map(({ key_hash }) => key_hash))
  for (const hash of brand<KeyHash>([...hashes, "f".repeat(64)])) {
    yield { name: "find", args: [hash], run: (keys) => keys.find(hash) }
  }
}

/** Builds the in-memory adapters with the sample workspaces. */
const buildModel = (): Promise<Context.Context<Layer.Success<typeof Memory.layer>>> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.tap(Layer.build(Layer.fresh(Memory.layer)), (model) =>
        Effect.forEach(sampleArchives, importArchive).pipe(Effect.orDie, Effect.provideContext(model))
      )
    )
  )

const build = <Port>(layer: Layer.Layer<Port>): Promise<Context.Context<Port>> =>
  Effect.runPromise(Effect.scoped(Layer.build(layer)))

/**
 * Checks that a `promptRepo` for `createPromptApi` returns what its contract requires, in any test runner. Rejects with an
 * error that shows the first call with another result, and the expected result.
 *
 * @param load Stores the content of some workspaces, and returns the `promptRepo` that reads it.
 */
export const checkPromptRepo = async (
  load: (
    workspaces: ReadonlyArray<WorkspaceArchive>
  ) => HostPrompts.HostPromptRepo | Promise<HostPrompts.HostPromptRepo>
): Promise<void> => {
  const store = await build(HostPrompts.layer(await load(structuredClone(sampleArchives) as never)))
  await compare(Context.get(store, PromptRepo), Context.get(await buildModel(), PromptRepo), promptReads())
}

/**
 * Checks that a `keyStore` for `createPromptApi` returns what its contract requires, in any test runner. Rejects with an
 * error that shows the first call with another result, and the expected result.
 *
 * @param load Stores the users and keys of some workspaces, and returns the `keyStore` that finds them.
 */
export const checkKeyStore = async (
  load: (
    workspaces: ReadonlyArray<WorkspaceArchive>
  ) => HostKeys.HostKeyStore | Promise<HostKeys.HostKeyStore>
): Promise<void> => {
  const store = await build(HostKeys.layer(await load(structuredClone(sampleArchives) as never)))
  await compare(Context.get(store, KeyStore), Context.get(await buildModel(), KeyStore), keyReads())
}
