import * as Schema from "effect/Schema"
import { PromptId } from "./Prompt.ts"
import { Timestamp } from "./Timestamp.ts"
import { Uuid } from "./Uuid.ts"

export const VersionId = Uuid.pipe(Schema.brand("VersionId")).annotate({ description: "The version's id." })
export type VersionId = typeof VersionId.Type

/** PostgreSQL counts versions in an integer. */
export const maxVersionNumber = 2147483647

const ChangeSummary = Schema.String.annotate({ description: "What changed, in words." })
const ChangeSource = Schema.String.annotate({
  description: "What made the change.",
  examples: ["manual", "ai-improve"]
})

export const VersionNumber = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxVersionNumber }))
  .pipe(Schema.brand("VersionNumber"))
  .annotate({ description: "Counts the versions of a prompt." })
export type VersionNumber = typeof VersionNumber.Type

/** An item of the version list: no content (SPEC.md section 2.5). */
export const VersionSummary = Schema.Struct({
  version_number: VersionNumber,
  change_summary: ChangeSummary,
  change_source: ChangeSource,
  created_at: Timestamp
}).annotate({ identifier: "VersionSummary", description: "An item of the version list: no content." })
export type VersionSummary = typeof VersionSummary.Type

/** Any map. Its values are not checked: a number may be an `ExactNumber`. */
const Metadata = Schema.Record(Schema.String, Schema.Any as Schema.Codec<Schema.Json>).annotate({
  description: "Free-form."
})

/** One version, whole; `parent_version_id` is null for the first (SPEC.md section 2.6). */
export const Version = Schema.Struct({
  id: VersionId,
  prompt_id: PromptId,
  version_number: VersionNumber,
  content: Schema.String.annotate({ description: "The prompt as it was in this version." }),
  change_summary: ChangeSummary,
  change_source: ChangeSource,
  parent_version_id: Schema.NullOr(VersionId).annotate({
    description: "The version before; null for the first."
  }),
  metadata: Metadata,
  created_at: Timestamp
}).annotate({ identifier: "Version", description: "One version of a prompt, whole." })
export type Version = typeof Version.Type

/** No such prompt, no such version of it, or one that the caller's tier does not show (SPEC.md section 4.5). */
export const VersionNotFound = { _tag: "VersionNotFound" } as const
export type VersionNotFound = typeof VersionNotFound

const numberPattern = /^[1-9][0-9]{0,9}$/

/** Reads a version number as written in a path: digits only, 1 to 2147483647, else `undefined`. */
export const parseVersionNumber = (text: string): VersionNumber | undefined => {
  if (!numberPattern.test(text)) return undefined
  const number = Number(text)
  return number <= maxVersionNumber ? (number as VersionNumber) : undefined
}
