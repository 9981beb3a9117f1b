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
} from "./Workspace.ts"

/** The lists of a workspace in the order of an export. An item refers only to items of earlier lists. */
export const workspaceLists = ["users", "api_keys", "folders", "tags", "fragments", "prompts"] as const
export type WorkspaceList = (typeof workspaceLists)[number]

interface WorkspaceItems {
  readonly users: User
  readonly api_keys: StoredKey
  readonly folders: Folder
  readonly tags: WorkspaceTag
  readonly fragments: Fragment
  readonly prompts: WorkspacePrompt
}

/** One part of a workspace, for streams of a whole workspace: the workspace itself, or an item of one of its lists. */
export type WorkspacePart =
  | { readonly list: "workspace"; readonly item: Workspace }
  | { [List in WorkspaceList]: { readonly list: List; readonly item: WorkspaceItems[List] } }[WorkspaceList]

/**
 * One part of an exported workspace: first the workspace itself, then the items of each list in the order of
 * `workspaceLists`. Unlike in `WorkspacePart`, the part of a prompt contains no fragments and no versions. The
 * fragments and then the versions follow the prompt as separate parts, so that no reader has to keep a whole history in
 * memory.
 */
export type ExportPart =
  | Exclude<WorkspacePart, { readonly list: "prompts" }>
  | { readonly list: "prompts"; readonly item: Omit<WorkspacePrompt, "fragments" | "versions"> }
  | { readonly list: "prompt_fragments"; readonly item: PromptFragment }
  | { readonly list: "prompt_versions"; readonly item: PromptVersion }
