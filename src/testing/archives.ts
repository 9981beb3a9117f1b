import { randomBytes, randomUUID } from "node:crypto"
import { type Archive, archiveFormat } from "../application/transfer/Archive.ts"
import {
  type ApiKey,
  type ApiKeyId,
  hashApiKey,
  makeApiKey,
  toKeyEnds,
  type UserId
} from "../domain/ApiKey.ts"
import type { FolderId, PromptId, TagId } from "../domain/Prompt.ts"
import type { Timestamp } from "../domain/Timestamp.ts"
import type { VersionId, VersionNumber } from "../domain/Version.ts"
import type {
  Folder,
  Fragment,
  PromptFragment,
  PromptVersion,
  StoredKey,
  User,
  Workspace,
  WorkspacePrompt,
  WorkspaceTag
} from "../domain/Workspace.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"

export const newId = <Id extends string>(): Id => randomUUID() as string as Id

/** Returns the timestamp of any text that `Date` can parse. */
export const instant = (text: string): Timestamp => new Date(text).toISOString() as Timestamp

export const versionNumber = (number: number): VersionNumber => number as VersionNumber

export const folder = (overrides: Partial<Folder> = {}): Folder => ({
  id: newId<FolderId>(),
  name: "Folder",
  ...overrides
})

export const tag = (name: string, overrides: Partial<WorkspaceTag> = {}): WorkspaceTag => ({
  id: newId<TagId>(),
  name,
  color: "#0a1B2c",
  ...overrides
})

export const fragment = (content: string, overrides: Partial<Fragment> = {}): Fragment => ({
  id: newId(),
  name: "Fragment",
  content,
  ...overrides
})

export const fragmentBinding = (
  { id }: Fragment,
  position: number,
  overrides: Partial<PromptFragment> = {}
): PromptFragment => ({
  id: newId(),
  fragment_id: id,
  position,
  variable_overrides: {},
  ...overrides
})

export const version = (number: number, overrides: Partial<PromptVersion> = {}): PromptVersion => ({
  id: newId<VersionId>(),
  version_number: versionNumber(number),
  content: `Content of version ${number}`,
  change_summary: `Change ${number}`,
  change_source: "manual",
  parent_version_id: null,
  metadata: {},
  created_at: instant("2026-03-01T12:00:00.000Z"),
  ...overrides
})

export const prompt = (overrides: Partial<WorkspacePrompt> = {}): WorkspacePrompt => ({
  id: newId<PromptId>(),
  title: "Title",
  description: "Description",
  current_content: "Content",
  prompt_type: "system",
  target_model: "model",
  intent: "intent",
  current_version: 1,
  folder_id: null,
  is_favorite: false,
  is_archived: false,
  sort_order: 0,
  created_at: instant("2026-01-01T00:00:00.000Z"),
  updated_at: instant("2026-01-02T00:00:00.000Z"),
  tags: [],
  fragments: [],
  versions: [],
  ...overrides
})

export const user = (overrides: Partial<User> = {}): User => {
  const id = overrides.id ?? newId<UserId>()
  return { id, email: `user-${id}@example.com`, must_reset_password: false, ...overrides }
}

/** A stored key and its plaintext. */
export interface Key {
  readonly plaintext: ApiKey
  readonly stored: StoredKey
}

/** Returns a random key of a workspace. If `workspace` is null, the key has no workspace. */
export const key = (workspace: WorkspaceId | null, owner: User, overrides: Partial<StoredKey> = {}): Key => {
  const plaintext = makeApiKey(randomBytes(32))
  return {
    plaintext,
    stored: {
      id: newId<ApiKeyId>(),
      workspace_id: workspace,
      created_by: owner.id,
      name: "Key",
      key_hash: hashApiKey(plaintext),
      ...toKeyEnds(plaintext),
      created_at: instant("2026-01-01T00:00:00.000Z"),
      revoked_at: null,
      expires_at: null,
      ...overrides
    }
  }
}

export const workspace = (overrides: Partial<Workspace> = {}): Workspace => ({
  id: newId<WorkspaceId>(),
  name: "Workspace",
  tier: "solo",
  billing_status: "active",
  ...overrides
})

/** Returns the archive of an empty workspace with the given fields replaced. */
export const archive = (overrides: Partial<Archive> = {}): Archive => ({
  format: archiveFormat,
  workspace: workspace(),
  users: [],
  api_keys: [],
  folders: [],
  tags: [],
  fragments: [],
  prompts: [],
  ...overrides
})

/** Texts that an encoding or escaping error of a database would change. */
export const awkwardTexts: ReadonlyArray<string> = [
  "",
  " leading and trailing ",
  "\n\r\n\t\u000b\u000c\u0001\u007f\u0085",
  "$& $1 $` $' $$",
  "'; drop table prompts; -- \" ` \\ \\n \\u0000 \\\\x",
  "%s %_ {0} $1 $2 ? :name @name",
  "{{slot}} {{{x}}} {{ }} }}{{",
  '{"json": [null, "\\u0000"]}',
  "äöü ß é e\u0301 İ ı ſ Σς",
  "日本語 العربية עברית ไทย",
  "😀👩‍👩‍👧‍👦 \u{10ffff} \ufffd \ufeff \u200b \u2028 \u2029",
  "\ufefftwo marks: \ufeff",
  "\ufeff\ufffd",
  "null",
  "\\N",
  "__proto__"
]
