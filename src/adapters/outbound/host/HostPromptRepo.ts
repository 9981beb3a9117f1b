import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { PromptRepo } from "../../../application/ports/PromptRepo.ts"
import type { Page, PageOfItems } from "../../../domain/Page.ts"
import { Prompt, PromptNotFound, PromptSummary, type PromptType } from "../../../domain/Prompt.ts"
import { Version, VersionNotFound, VersionSummary } from "../../../domain/Version.ts"
import { HostCalls } from "./HostCalls.ts"
import type { WatchableStore } from "./HostChangeFeed.ts"

/** A prompt as a host returns it, with the fields of the HTTP API. Further properties are ignored. */
export type HostPrompt = (typeof Prompt)["Encoded"]

/** An item of the prompt list as a host returns it. */
export type HostPromptSummary = (typeof PromptSummary)["Encoded"]

/** A version of a prompt as a host returns it. */
export type HostVersion = (typeof Version)["Encoded"]

/** An item of the version list as a host returns it. */
export type HostVersionSummary = (typeof VersionSummary)["Encoded"]

/** Selects prompts of a workspace; an absent field selects all. */
export interface HostPromptFilter {
  readonly folder_id?: string | undefined
  /** The exact name of a tag. Any text is possible. */
  readonly tag?: string | undefined
  readonly type?: PromptType | undefined
}

/** A prompt with its fragments, before its resolution. */
export interface HostPromptSource
  extends Pick<HostPrompt, "id" | "title" | "prompt_type" | "target_model" | "current_content"> {
  /**
   * The version number of `current_content`. Without it, responses have no `Prompt-Version` header, and
   * `checkPromptRepo` fails.
   */
  readonly current_version?: number | undefined
  /** In the order in which they are appended. */
  readonly fragments: ReadonlyArray<{
    readonly content: string
    /** An object with the values of the fragment's slots by name. Strings, numbers and booleans fill a slot. */
    readonly variable_overrides: unknown
  }>
}

/**
 * The prompts of a host. Every function sees only the given workspace, and `undefined` means that the workspace has no
 * such prompt or version. Ids are UUIDs in lowercase; times are ISO 8601 in UTC with milliseconds.
 */
export interface HostPromptRepo extends WatchableStore {
  /**
   * Returns one page of the prompts that are not archived and match the filter, ordered by `updated_at`, then id, both
   * descending, and the number of all matching prompts. A page past the end is empty.
   */
  readonly list: (
    workspaceId: string,
    filter: HostPromptFilter,
    page: Page
  ) => Promise<PageOfItems<HostPromptSummary>>
  /** Returns one prompt, archived or not, its tags ordered by name. */
  readonly get: (workspaceId: string, id: string) => Promise<HostPrompt | undefined>
  /** Returns one prompt, archived or not, with its fragments. */
  readonly getSource: (workspaceId: string, id: string) => Promise<HostPromptSource | undefined>
  /**
   * Returns one page of a prompt's versions, highest number first, and their number. With `oldest`, a time, only the
   * versions that were created then or later count.
   */
  readonly listVersions: (
    workspaceId: string,
    id: string,
    oldest: string | undefined,
    page: Page
  ) => Promise<PageOfItems<HostVersionSummary> | undefined>
  /** Returns one version. With `oldest`, `undefined` for a version that was created earlier. */
  readonly getVersion: (
    workspaceId: string,
    id: string,
    number: number,
    oldest: string | undefined
  ) => Promise<HostVersion | undefined>
}

const Total = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const Source = Schema.Struct({
  id: Prompt.fields.id,
  title: Schema.String,
  prompt_type: Prompt.fields.prompt_type,
  target_model: Schema.String,
  current_content: Schema.String,
  current_version: Schema.optional(Prompt.fields.current_version),
  fragments: Schema.Array(Schema.Struct({ content: Schema.String, variable_overrides: Schema.Unknown }))
})

const toPageSchema = <A>(item: Schema.Decoder<A>): Schema.Decoder<PageOfItems<A>> =>
  Schema.Struct({ items: Schema.Array(item), total: Total })

/** The prompts of a host. */
export const layer = (host: HostPromptRepo): Layer.Layer<PromptRepo> =>
  Layer.sync(PromptRepo, () => {
    const calls = new HostCalls("promptRepo")
    const readPage = calls.makeReader("list", toPageSchema(PromptSummary))
    const findPrompt = calls.makeFinder("get", Prompt, PromptNotFound)
    const findSource = calls.makeFinder("getSource", Source, PromptNotFound)
    const findVersionPage = calls.makeFinder("listVersions", toPageSchema(VersionSummary), PromptNotFound)
    const findVersion = calls.makeFinder("getVersion", Version, VersionNotFound)
    const list: PromptRepo["Service"]["list"] = (workspace, filter, page) =>
      readPage(() => host.list(workspace, filter, page))
    return {
      list,
      listPage: (workspace, filter, page) => Effect.map(list(workspace, filter, page), ({ items }) => items),
      get: (workspace, id) => findPrompt(() => host.get(workspace, id)),
      getSource: (workspace, id) => findSource(() => host.getSource(workspace, id)),
      listVersions: (workspace, id, oldest, page) =>
        findVersionPage(() => host.listVersions(workspace, id, oldest, page)),
      getVersion: (workspace, id, number, oldest) =>
        findVersion(() => host.getVersion(workspace, id, number, oldest))
    }
  })
