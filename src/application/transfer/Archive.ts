import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { ApiKeyId, UserId } from "../../domain/ApiKey.ts"
import { FolderId, PromptId, TagId, Uuid } from "../../domain/Prompt.ts"
import { isRepresentable, normalizeTime, parseTime, timePattern, Timestamp } from "../../domain/Timestamp.ts"
import { VersionId } from "../../domain/Version.ts"
import { ArchiveTooLarge } from "../../domain/WorkspaceContent.ts"
import {
  Folder,
  Fragment,
  limitFragments,
  limitTags,
  PromptFragment,
  PromptVersion,
  StoredKey,
  User,
  type WholeWorkspace,
  Workspace,
  WorkspacePrompt,
  WorkspaceTag
} from "../../domain/Workspace.ts"
import { WorkspaceId } from "../../domain/WorkspaceId.ts"

// A workspace archive: a whole workspace as one JSON file. The file holds the items of the domain's `Workspace.ts`, but
// ids may contain uppercase letters, and times may be any ISO 8601 times with an offset.

const AnyCaseUuid = Schema.String.check(
  Schema.isPattern(/^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/u, { message: "must be a UUID" })
).annotate({ description: "UUID in any case." })

/** An id in uppercase or lowercase letters, decoded to lowercase. */
const anyCase = <Id extends string>(id: Schema.Codec<Id, string>): Schema.Codec<Id, string> =>
  AnyCaseUuid.pipe(Schema.decodeTo(id, SchemaTransformation.toLowerCase()))

/**
 * An ISO 8601 time with an offset in the years 0001 to 9999, decoded to UTC with milliseconds. Digits after
 * milliseconds are dropped.
 */
const Time = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      isRepresentable(parseTime(text))
        ? undefined
        : "must be an ISO 8601 time with an offset, in the years 0001 to 9999",
    // The pattern also accepts times that do not exist, such as a time on February 30.
    { toJsonSchema: () => [{ pattern: timePattern }, true] }
  )
)
  .annotate({ description: "ISO 8601 time with an offset. Digits after milliseconds are dropped." })
  .pipe(
    Schema.decodeTo(
      Timestamp,
      SchemaTransformation.transform<string, string>({ decode: normalizeTime, encode: (text) => text })
    )
  )

const ArchiveKey = Schema.Struct({
  ...StoredKey.fields,
  id: anyCase(ApiKeyId),
  workspace_id: Schema.NullOr(anyCase(WorkspaceId)),
  created_by: anyCase(UserId),
  created_at: Time,
  revoked_at: Schema.NullOr(Time),
  expires_at: Schema.NullOr(Time).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null)))
})

const ArchiveVersion = Schema.Struct({
  ...PromptVersion.fields,
  id: anyCase(VersionId),
  parent_version_id: Schema.NullOr(anyCase(VersionId)),
  created_at: Time
})

const ArchivePrompt = Schema.Struct({
  ...WorkspacePrompt.fields,
  id: anyCase(PromptId),
  folder_id: Schema.NullOr(anyCase(FolderId)),
  created_at: Time,
  updated_at: Time,
  tags: limitTags(anyCase(TagId)),
  fragments: limitFragments(
    Schema.Struct({ ...PromptFragment.fields, id: anyCase(Uuid), fragment_id: anyCase(Uuid) })
  ),
  versions: Schema.Array(ArchiveVersion)
})

export const archiveFormat = "prompt-retrieval/workspace@1"

export const Archive = Schema.Struct({
  format: Schema.Literal(archiveFormat),
  workspace: Schema.Struct({ ...Workspace.fields, id: anyCase(WorkspaceId) }),
  users: Schema.Array(Schema.Struct({ ...User.fields, id: anyCase(UserId) })),
  api_keys: Schema.Array(ArchiveKey),
  folders: Schema.Array(Schema.Struct({ ...Folder.fields, id: anyCase(FolderId) })),
  tags: Schema.Array(Schema.Struct({ ...WorkspaceTag.fields, id: anyCase(TagId) })),
  fragments: Schema.Array(Schema.Struct({ ...Fragment.fields, id: anyCase(Uuid) })),
  prompts: Schema.Array(ArchivePrompt)
}).annotate({ title: "Workspace archive", description: "A whole workspace as one JSON file." })
export type Archive = typeof Archive.Type

/** Maximum size of an archive's file in bytes. An import has the whole text in memory. */
export const maxArchiveBytes = 256 * 1024 * 1024

/** The lists of an archive in the order of an export. */
const lists = ["users", "api_keys", "folders", "tags", "fragments", "prompts"] as const

/**
 * Returns the JSON of one item. Omits the `expires_at` of a key that never expires, so that older versions of the
 * program can import the archive.
 */
const writeItem = (item: object): string =>
  JSON.stringify("expires_at" in item && item.expires_at === null ? { ...item, expires_at: undefined } : item)

/** The last piece of an archive. */
const end = "}\n"

/** Writes a workspace as the text of an archive, in pieces. Each item of a list is on its own line, for readable diffs. */
export function* writeArchive(whole: WholeWorkspace): Generator<string> {
  yield `{"format":"${archiveFormat}",\n"workspace":${JSON.stringify(whole.workspace)}`
  for (const list of lists) {
    let separator = `,\n"${list}":[\n`
    for (const item of whole[list]) {
      yield separator + writeItem(item)
      separator = ",\n"
    }
    yield whole[list].length === 0 ? `,\n"${list}":[]` : "\n]"
  }
  yield end
}

/** The minimum number of characters of each chunk before the last chunk. */
const chunkLength = 1024 * 1024

/** Encodes a workspace as the text of an archive, in chunks. Fails if the text is too large for an import. */
export const encodeArchive = (
  whole: WholeWorkspace
): Result.Result<ReadonlyArray<Uint8Array>, ArchiveTooLarge> => {
  const chunks: Array<Uint8Array> = []
  let text = ""
  let bytes = 0
  for (const piece of writeArchive(whole)) {
    text += piece
    if (text.length < chunkLength && piece !== end) continue
    const chunk = new TextEncoder().encode(text)
    bytes += chunk.length
    if (bytes > maxArchiveBytes) return Result.fail(ArchiveTooLarge)
    chunks.push(chunk)
    text = ""
  }
  return Result.succeed(chunks)
}
