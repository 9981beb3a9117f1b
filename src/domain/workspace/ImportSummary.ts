import type { WorkspacePart } from "./WorkspaceParts.ts"

/** The number of items of each kind that an import contained. */
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

export const emptySummary: ImportSummary = {
  workspace_id: "",
  prompts: 0,
  versions: 0,
  fragments: 0,
  folders: 0,
  tags: 0,
  users: 0,
  api_keys: 0
}

/** Returns a summary that also counts this part. */
export const addPart = (summary: ImportSummary, part: WorkspacePart): ImportSummary => {
  switch (part.list) {
    case "workspace":
      return { ...summary, workspace_id: part.item.id }
    case "prompts":
      return {
        ...summary,
        prompts: summary.prompts + 1,
        versions: summary.versions + part.item.versions.length
      }
    default:
      return { ...summary, [part.list]: summary[part.list] + 1 }
  }
}
