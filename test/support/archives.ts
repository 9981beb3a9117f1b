import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { type Archive, archiveFromParts } from "../../src/application/transfer/Archive.ts"
import { ArchiveReader } from "../../src/application/transfer/ArchiveReader.ts"
import { ArchiveWriter } from "../../src/application/transfer/ArchiveWriter.ts"
import { toRawParts } from "../../src/application/transfer/RawPart.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import type { InvalidContent } from "../../src/domain/workspace/Problem.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import type { PromptFragment, PromptVersion, WorkspacePrompt } from "../../src/domain/workspace/Workspace.ts"
import type { ImportedFile } from "../../src/domain/workspace/ImportedFile.ts"
import type { VersionHistory, WorkspaceContent } from "../../src/domain/workspace/WorkspaceContent.ts"
import type { VersionId } from "../../src/domain/Version.ts"
import {
  type ExportPart,
  type WorkspacePart,
  workspaceLists
} from "../../src/domain/workspace/WorkspaceParts.ts"
import { archive, key, user, workspace } from "../../src/testing/archives.ts"

// The archives of the contract suites, and conversions for other tests.
export * from "../../src/testing/archives.ts"
export * from "../../src/testing/generatedArchives.ts"

/** The content of a tenant, and fields of its workspace and of its key. */
interface TenantOptions extends Partial<Pick<Archive, "folders" | "tags" | "fragments" | "prompts">> {
  readonly workspace?: Parameters<typeof workspace>[0]
  readonly key?: Parameters<typeof key>[2]
}

/** Makes a workspace with one user, who owns one key. */
export const makeTenant = (options: TenantOptions = {}) => {
  const { workspace: workspaceFields, key: keyFields, ...content } = options
  const home = workspace(workspaceFields)
  const owner = user()
  const own = key(home.id, owner, keyFields)
  return {
    home,
    owner,
    key: own,
    archive: archive({ workspace: home, users: [owner], api_keys: [own.stored], ...content })
  }
}

export const compareIds = (a: { readonly id: string }, b: { readonly id: string }): number =>
  a.id < b.id ? -1 : 1

export const toWorkspaceParts = function* (archive: Archive): Generator<WorkspacePart> {
  yield { list: "workspace", item: archive.workspace }
  for (const list of workspaceLists) {
    for (const item of archive[list]) yield { list, item } as WorkspacePart
  }
}

/** Builds an archive from all the parts of an export. */
export const archiveFromExport = (parts: Iterable<ExportPart>): Archive => {
  const whole: Array<WorkspacePart> = []
  let fragments: Array<PromptFragment> = []
  let versions: Array<PromptVersion> = []
  for (const part of parts) {
    switch (part.list) {
      case "prompts":
        fragments = []
        versions = []
        whole.push({ list: "prompts", item: { ...part.item, fragments, versions } })
        break
      case "prompt_fragments":
        fragments.push(part.item)
        break
      case "prompt_versions":
        versions.push(part.item)
        break
      default:
        whole.push(part)
    }
  }
  return archiveFromParts(whole)
}

/** Returns the parts of an archive as the stream that `WorkspaceStore.importWorkspace` takes. */
export const toPartStream = (archive: Archive): Stream.Stream<WorkspacePart> =>
  Stream.fromIterable(toWorkspaceParts(archive))

/** Splits the parts of a workspace into the parts of an export. */
export const toExportParts = function* (parts: Iterable<WorkspacePart>): Generator<ExportPart> {
  for (const part of parts) {
    if (part.list !== "prompts") {
      yield part
      continue
    }
    const { fragments, versions, ...prompt } = part.item
    yield { list: "prompts", item: prompt }
    for (const item of fragments) yield { list: "prompt_fragments", item }
    for (const item of versions) yield { list: "prompt_versions", item }
  }
}

/** Returns the text of an archive's file, as an export writes it. */
export const toArchiveText = (archive: Archive): string => {
  const writer = new ArchiveWriter()
  const texts = [...toExportParts(toWorkspaceParts(archive))].map((part) => writer.write(part))
  return texts.join("") + writer.end()
}

/** Returns an archive with its members in another order: each number of `order` moves one of the members to the end. */
export const shuffleMembers = (archive: Archive, order: ReadonlyArray<number>): Archive => {
  const members = Object.entries(archive)
  for (const number of order) members.push(...members.splice(number % members.length, 1))
  return Object.fromEntries(members) as unknown as Archive
}

/** Reads an archive from parsed JSON. Fails if any part is invalid. */
export const parseArchive = (json: unknown): Result.Result<Archive, InvalidContent> => {
  const reader = new ArchiveReader()
  const parts = [...toRawParts(json)].map((raw) => reader.read(raw)).filter((part) => part !== undefined)
  return reader.hasProblems ? Result.fail(reader.toError()) : Result.succeed(archiveFromParts(parts))
}

/** Imports an archive into the store of the current test. */
export const loadArchive = (archive: Archive) =>
  Effect.flatMap(WorkspaceStore, (store) => store.importWorkspace(toPartStream(archive)))

export const exportArchive = Effect.fnUntraced(function* (workspace: WorkspaceId) {
  const { exportWorkspace } = yield* WorkspaceStore
  const exported: Array<ExportPart> = []
  yield* exportWorkspace(workspace, (parts) => Effect.sync(() => void exported.push(...parts)))
  return archiveFromExport(exported)
})

/** Reduces the versions of a prompt to the current and the last version. */
const toVersionHistory = (
  current_version: number,
  versions: ReadonlyArray<PromptVersion>
): VersionHistory => {
  let last: VersionHistory["last"] = null
  let current_id: VersionId | null = null
  for (const { id, version_number } of versions) {
    if (version_number === current_version) current_id = id
    if (last === null || version_number > last.version_number) last = { id, version_number }
  }
  return { current_id, last }
}

/** Reduces the content of a whole workspace to its current state. */
export const toWorkspaceContent = (
  whole: Omit<WorkspaceContent, "prompts" | "importedFiles"> & {
    readonly prompts: ReadonlyArray<WorkspacePrompt>
  },
  importedFiles: ReadonlyArray<ImportedFile> = []
): WorkspaceContent => ({
  folders: whole.folders,
  tags: whole.tags,
  fragments: whole.fragments,
  prompts: whole.prompts.map(({ versions, ...prompt }) => ({
    ...prompt,
    history: toVersionHistory(prompt.current_version, versions)
  })),
  importedFiles
})
