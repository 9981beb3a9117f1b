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
