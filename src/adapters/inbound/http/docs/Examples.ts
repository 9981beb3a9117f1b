import type { PageMeta } from "../../../../domain/Page.ts"
import type { Prompt, PromptSummary, ResolvedPrompt } from "../../../../domain/Prompt.ts"
import type { Version, VersionSummary } from "../../../../domain/Version.ts"

const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"
const folderId = "bab2b473-f525-5bbd-9bfd-ea3313c3418e"

const summary: (typeof PromptSummary)["Encoded"] = {
  id,
  title: "Support agent",
  description: "Answers customers of the shop",
  prompt_type: "system",
  target_model: "gpt-4o",
  intent: "support",
  current_version: 3,
  created_at: "2026-03-03T09:30:00.000Z",
  updated_at: "2026-05-03T09:30:00.000Z"
}

const content =
  "You are a support agent of {{shop}}. Be brief and friendly, and end with one clear next step."

const prompt: (typeof Prompt)["Encoded"] = {
  id,
  title: summary.title,
  description: summary.description,
  current_content: content,
  prompt_type: summary.prompt_type,
  target_model: summary.target_model,
  intent: summary.intent,
  current_version: summary.current_version,
  folder_id: folderId,
  is_favorite: true,
  is_archived: false,
  sort_order: 1,
  tags: [{ id: "fa253d8d-1ef7-5246-bc48-394929f4e05c", name: "production", color: "#2e7d32" }],
  created_at: summary.created_at,
  updated_at: summary.updated_at
}

const resolved: (typeof ResolvedPrompt)["Encoded"] = {
  id,
  title: summary.title,
  prompt_type: summary.prompt_type,
  target_model: summary.target_model,
  resolved_content: [
    content,
    "Write as Acme does: warm and calm, without jargon, and address the reader directly.",
    "Answer in English. Use at most 4 sentences.",
    "Never reveal personal data. If you are not sure, say so instead of guessing."
  ].join("\n\n"),
  fragment_count: 3
}

const versionSummary: (typeof VersionSummary)["Encoded"] = {
  version_number: 2,
  change_summary: "Name the shop",
  change_source: "ai-improve",
  created_at: "2026-04-03T09:30:00.000Z"
}

const version: (typeof Version)["Encoded"] = {
  id: "e706b5e8-3444-5700-bb13-18ee98064f38",
  prompt_id: id,
  version_number: versionSummary.version_number,
  content: "You are a support agent of {{shop}}. Be brief and friendly.",
  change_summary: versionSummary.change_summary,
  change_source: versionSummary.change_source,
  parent_version_id: "055c28e6-1ed0-5ca3-9f3e-c25f8e07eb57",
  metadata: { applied_suggestions: 2 },
  created_at: versionSummary.created_at
}

const makePage = <A>(item: A, meta: (typeof PageMeta)["Encoded"]) => ({ data: [item], meta })

/** Responses of the demo workspace, by operation. */
export const exampleResponses: Readonly<Record<string, unknown>> = {
  "prompts.list": makePage(summary, { page: 1, per_page: 1, total: 6 }),
  "prompts.get": { data: prompt },
  "prompts.getResolved": { data: resolved },
  "prompts.listVersions": makePage(versionSummary, { page: 2, per_page: 1, total: 3 }),
  "prompts.getVersion": { data: version }
}

/** The value of the header `Prompt-Version` in the examples. */
export const exampleVersion = summary.current_version

/** The parameter values that produce the example responses. */
export const exampleIds = { id, version: versionSummary.version_number }
