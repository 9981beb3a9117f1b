import * as Effect from "effect/Effect"
import * as Order from "effect/Order"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import type { PromptFilter, PromptRepo } from "../../../application/ports/PromptRepo.ts"
import type { Archive } from "../../../application/transfer/Archive.ts"
import { isVisible } from "../../../domain/Billing.ts"
import { paginate } from "../../../domain/Page.ts"
import {
  Prompt,
  PromptNotFound,
  PromptSummary,
  pickRepeatedFields,
  type Tag
} from "../../../domain/Prompt.ts"
import { findName, findPrompt, type PromptReference } from "../../../domain/PromptName.ts"
import type { ResolutionSource } from "../../../domain/Resolution.ts"
import type { Timestamp } from "../../../domain/Timestamp.ts"
import { type Version, VersionNotFound, VersionSummary } from "../../../domain/Version.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"

type ArchivePrompt = Archive["prompts"][number]

const findTags = (workspace: Archive, prompt: ArchivePrompt): ReadonlyArray<Tag> =>
  workspace.tags
    .filter((tag) => prompt.tags.includes(tag.id))
    .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))

const matches = (workspace: Archive, filter: PromptFilter, prompt: ArchivePrompt): boolean =>
  !prompt.is_archived &&
  (filter.folder_id === undefined || prompt.folder_id === filter.folder_id) &&
  (filter.type === undefined || prompt.prompt_type === filter.type) &&
  (filter.tag === undefined || findTags(workspace, prompt).some((tag) => tag.name === filter.tag))

/** Returns a copy of `item` that has only the fields of the schema. */
const pickFields = <A extends object>(
  { fields }: { readonly Type: A; readonly fields: object },
  item: NoInfer<A>
): A => Struct.pick(item, Object.keys(fields) as Array<keyof A>) as A

/** Returns a prompt in the form that `PromptRepo.getSource` returns. Does not check the size of the contents. */
export const getSource = (workspace: Archive, prompt: ArchivePrompt): ResolutionSource => ({
  ...pickRepeatedFields(prompt),
  current_content: prompt.current_content,
  current_version: prompt.current_version,
  fragments: prompt.fragments
    .toSorted(Order.Struct({ position: Order.Number, id: Order.String }))
    .flatMap(({ fragment_id, variable_overrides }) => {
      const fragment = workspace.fragments.find(({ id }) => id === fragment_id)
      return fragment === undefined ? [] : [{ content: fragment.content, variable_overrides }]
    })
})

/** Returns the versions of a prompt that were created at `oldest` or later, the highest number first. */
const listVersions = (
  { id, versions }: ArchivePrompt,
  oldest: Timestamp | undefined
): ReadonlyArray<Version> =>
  versions
    .filter((version) => isVisible(version.created_at, oldest))
    .sort(Order.flip(Order.Struct({ version_number: Order.Number })))
    .map((version) => ({ ...version, prompt_id: id, metadata: version.metadata as Version["metadata"] }))

/** Makes a `PromptRepo` that reads these workspaces. */
export const makePromptRepo = (workspaces: ReadonlyMap<WorkspaceId, Archive>): PromptRepo["Service"] => {
  const find = (workspaceId: WorkspaceId, reference: PromptReference) =>
    Effect.suspend(() => {
      const workspace = workspaces.get(workspaceId)
      const prompt = workspace && findPrompt(workspace.prompts, reference)
      return workspace === undefined || prompt === undefined
        ? Effect.fail(PromptNotFound)
        : Effect.succeed({ workspace, prompt })
    })

  const list: PromptRepo["Service"]["list"] = (workspaceId, filter, page) =>
    Effect.sync(() => {
      const workspace = workspaces.get(workspaceId)
      const found = workspace?.prompts
        .filter((prompt) => matches(workspace, filter, prompt))
        .sort(Order.flip(Order.Struct({ updated_at: Order.String, id: Order.String })))
        .map((prompt) => pickFields(PromptSummary, prompt))
      return paginate(found ?? [], page)
    })

  return {
    list,
    listPage: (workspaceId, filter, page) =>
      Effect.map(list(workspaceId, filter, page), ({ items }) => items),
    listNamed: (workspaceId, page) =>
      Effect.map(list(workspaceId, {}, page), ({ items }) => {
        const all = workspaces.get(workspaceId)?.prompts ?? []
        return items.map(({ id, title, description }) => ({
          id,
          name: findName(all, { id, title }),
          title,
          description
        }))
      }),
    get: (workspaceId, reference) =>
      Effect.map(find(workspaceId, reference), ({ workspace, prompt }) =>
        pickFields(Prompt, { ...prompt, tags: findTags(workspace, prompt) })
      ),
    getSource: (workspaceId, reference) =>
      Effect.map(find(workspaceId, reference), ({ workspace, prompt }) => getSource(workspace, prompt)),
    getSources: (workspaceId, references) =>
      Effect.sync(() => {
        const workspace = workspaces.get(workspaceId)
        if (workspace === undefined) return []
        return references.flatMap((reference, index) => {
          const prompt = findPrompt(workspace.prompts, reference)
          if (prompt === undefined) return []
          const name = findName(workspace.prompts, prompt)
          return [{ index, name, source: Result.succeed(getSource(workspace, prompt)) }]
        })
      }),
    listVersions: (workspaceId, reference, oldest, page) =>
      Effect.map(find(workspaceId, reference), ({ prompt }) =>
        paginate(
          listVersions(prompt, oldest).map((version) => pickFields(VersionSummary, version)),
          page
        )
      ),
    getVersion: (workspaceId, reference, number, oldest) =>
      find(workspaceId, reference).pipe(
        Effect.mapError(() => VersionNotFound),
        Effect.flatMap(({ prompt }) => {
          const version = listVersions(prompt, oldest).find(({ version_number }) => version_number === number)
          return version === undefined ? Effect.fail(VersionNotFound) : Effect.succeed(version)
        })
      )
  }
}
