import * as Schema from "effect/Schema"
import type { ApiKeyId } from "../ApiKey.ts"
import { Timestamp } from "../Timestamp.ts"
import type { StoredKey, User, Workspace } from "./Workspace.ts"
import type { ContentEdit } from "./WorkspaceContent.ts"
import { WorkspaceId } from "../WorkspaceId.ts"

/** The changes and exports that the audit log records. */
export type AuditAction =
  | "workspace.created"
  | "workspace.renamed"
  | "workspace.changed"
  | "workspace.imported"
  | "workspace.edited"
  | "workspace.exported"
  | "workspace.deleted"
  | "user.changed"
  | "user.deleted"
  | "key.issued"
  | "key.rotated"
  | "key.revoked"
  | "key.deleted"

/** The imported workspace, and the number of items of each kind in its archive. */
export interface ImportSummary {
  readonly workspace_id: string
  readonly prompts: number
  readonly versions: number
  readonly fragments: number
  readonly folders: number
  readonly tags: number
  readonly users: number
  readonly api_keys: number
}

type Details = Readonly<Record<string, string | number | boolean | null>>

/**
 * A change or an export to record. An entry never contains the plaintext or the hash of a key, or the text of a prompt.
 */
export interface AuditEntry {
  readonly action: AuditAction
  /**
   * The workspace that changed, that was exported or to which the key belongs. Null for a user, because a user belongs
   * to no workspace, and for a key without a workspace.
   */
  readonly workspace_id: WorkspaceId | null
  /** The name of the workspace, the email of the user, the id of the key, or the source of the import or edit. */
  readonly subject: string
  readonly details: Details
}

/**
 * A recorded change or export. `action` is not always an `AuditAction`, because a newer program may have recorded the
 * event.
 */
export const AuditEvent = Schema.Struct({
  /** A decimal number. Ids increase in the order in which events are written. */
  id: Schema.String,
  /** When the transaction that recorded the event began, by the clock of the database. */
  at: Timestamp,
  /** The name of the person or program that made the change or export. */
  actor: Schema.String,
  action: Schema.String,
  workspace_id: Schema.NullOr(WorkspaceId),
  subject: Schema.String,
  details: Schema.Record(Schema.String, Schema.Unknown)
})
export type AuditEvent = typeof AuditEvent.Type

type AuditedWorkspace = Omit<Workspace, "tier"> & { readonly tier: string }

type AuditedUser = Pick<User, "email" | "must_reset_password">

interface AuditedKey extends Pick<StoredKey, "id" | "workspace_id" | "name" | "revoked_at" | "expires_at"> {
  /** The email of the owner. */
  readonly owner: string
}

const toKeyEntry = (
  action: AuditAction,
  { id, workspace_id, name, owner }: AuditedKey,
  details: Details = {}
): AuditEntry => ({ action, workspace_id, subject: id, details: { name, owner, ...details } })

export const toWorkspaceCreatedEntry = ({ id, name, tier }: AuditedWorkspace): AuditEntry => ({
  action: "workspace.created",
  workspace_id: id,
  subject: name,
  details: { tier }
})

/**
 * Describes a change of a workspace: one entry if its name changed, and one entry if its tier or billing status
 * changed.
 */
export const toWorkspaceChangedEntries = (
  before: AuditedWorkspace,
  after: AuditedWorkspace
): ReadonlyArray<AuditEntry> => {
  const { id: workspace_id, name: subject } = after
  const changed: Record<string, string> = {}
  if (after.tier !== before.tier) changed.tier = after.tier
  if (after.billing_status !== before.billing_status) changed.billing_status = after.billing_status
  return [
    ...(after.name === before.name
      ? []
      : [{ action: "workspace.renamed" as const, workspace_id, subject, details: { from: before.name } }]),
    ...(Object.keys(changed).length === 0
      ? []
      : [{ action: "workspace.changed" as const, workspace_id, subject, details: changed }])
  ]
}

export const toWorkspaceDeletedEntry = ({
  id,
  name,
  prompts,
  api_keys
}: AuditedWorkspace & { readonly prompts: number; readonly api_keys: number }): AuditEntry => ({
  action: "workspace.deleted",
  workspace_id: id,
  subject: name,
  details: { prompts, api_keys }
})

const unknownSource = "unknown"

/** Describes the import of an archive. `source` says where the archive comes from; undefined becomes `unknown`. */
export const toWorkspaceImportedEntry = (
  source: string | undefined,
  { workspace_id, ...counts }: ImportSummary
): AuditEntry => ({
  action: "workspace.imported",
  workspace_id: workspace_id as WorkspaceId,
  subject: source ?? unknownSource,
  details: counts
})

/**
 * Describes an edit of a workspace's content, such as an import of prompt files. The details are the numbers of
 * prompts, versions, fragments, folders and tags that the edit writes, and the number of fragments that it removes.
 */
export const toWorkspaceEditedEntry = (
  workspace_id: WorkspaceId,
  source: string | undefined,
  { prompts, fragments, removedFragments, folders, tags }: ContentEdit
): AuditEntry => ({
  action: "workspace.edited",
  workspace_id,
  subject: source ?? unknownSource,
  details: {
    prompts: prompts.length,
    versions: prompts.filter(({ version }) => version !== undefined).length,
    fragments: fragments.length,
    removed_fragments: removedFragments.length,
    folders: folders.length,
    tags: tags.length
  }
})

export type ExportFormat = "archive" | "files"

export const toWorkspaceExportedEntry = (
  { id, name }: Pick<AuditedWorkspace, "id" | "name">,
  format: ExportFormat
): AuditEntry => ({ action: "workspace.exported", workspace_id: id, subject: name, details: { format } })

/** Returns the entry for a changed user, or no entry if `must_reset_password` did not change. */
export const toUserChangedEntries = (before: AuditedUser, after: AuditedUser): ReadonlyArray<AuditEntry> =>
  before.must_reset_password === after.must_reset_password
    ? []
    : [
        {
          action: "user.changed",
          workspace_id: null,
          subject: after.email,
          details: { must_reset_password: after.must_reset_password }
        }
      ]

/** Describes the deletion of a user and of the keys that the user owned. */
export const toUserDeletedEntries = (
  { email }: AuditedUser,
  keys: ReadonlyArray<AuditedKey>
): ReadonlyArray<AuditEntry> => [
  { action: "user.deleted", workspace_id: null, subject: email, details: { api_keys: keys.length } },
  ...keys.map((key) => toKeyEntry("key.deleted", key))
]

export const toKeyIssuedEntry = (key: AuditedKey): AuditEntry =>
  toKeyEntry("key.issued", key, { expires_at: key.expires_at })

/** Describes the rotation of a key. `key` is the replaced key in its state after the rotation. */
export const toKeyRotatedEntry = (
  key: AuditedKey,
  replacement: { readonly id: ApiKeyId; readonly expires_at: Timestamp | null }
): AuditEntry =>
  toKeyEntry("key.rotated", key, {
    ends_at: key.revoked_at ?? key.expires_at,
    new_key: replacement.id,
    new_key_expires_at: replacement.expires_at
  })

/** Returns the entry for a revoked key, or no entry if the key was already revoked. */
export const toKeyRevokedEntries = (
  before: { readonly revoked_at: Timestamp | null },
  after: AuditedKey
): ReadonlyArray<AuditEntry> => (before.revoked_at === null ? [toKeyEntry("key.revoked", after)] : [])
