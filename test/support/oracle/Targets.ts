import type { Prompt, PromptSummary, ResolvedPrompt } from "../../../src/domain/Prompt.ts"
import type { VersionSummary } from "../../../src/domain/Version.ts"
import type { Parts } from "./Timeline.ts"

// The targets of requests, and the parts of each resource that the oracle compares. Rows of PostgreSQL and bodies of
// responses have the same fields, so the same functions convert both to parts.

/** The target of the list, with every prompt on one page. */
export const listTarget = "/api/v1/prompts?per_page=100"

export const toTargets = (id: string) => ({
  item: `/api/v1/prompts/${id}`,
  resolved: `/api/v1/prompts/${id}/resolved`,
  versions: `/api/v1/prompts/${id}/versions?per_page=100`
})

export const describeItem = ({
  title,
  current_content,
  current_version,
  is_archived
}: Pick<Prompt, "title" | "current_content" | "current_version" | "is_archived">): Parts => [
  JSON.stringify({ title, current_content, current_version, is_archived })
]

export const describeResolved = ({
  title,
  resolved_content,
  fragment_count
}: Pick<ResolvedPrompt, "title" | "resolved_content" | "fragment_count">): Parts => [
  JSON.stringify({ title, resolved_content, fragment_count })
]

/** Returns two parts, because the total of a list is cached separately and may come from another snapshot. */
export const describeList = (
  items: ReadonlyArray<Pick<PromptSummary, "id" | "title" | "current_version">>,
  total: number
): Parts => [
  JSON.stringify(items.map(({ id, title, current_version }) => [id, title, current_version])),
  `${total} in total`
]

export const describeVersions = (
  versions: ReadonlyArray<Pick<VersionSummary, "change_summary"> & { readonly version_number: number }>,
  total: number
): Parts => [
  JSON.stringify([
    total,
    ...versions.map(({ version_number, change_summary }) => [version_number, change_summary])
  ])
]

/** Returns the parts of the body of a 200 response. */
export const describeBody = (target: string, body: string): Parts => {
  const { data, meta } = JSON.parse(body)
  if (target === listTarget) return describeList(data, meta.total)
  if (target.endsWith("/resolved")) return describeResolved(data)
  if (target.includes("/versions")) return describeVersions(data, meta.total)
  return describeItem(data)
}
