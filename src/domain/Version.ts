import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { parsePositiveInt } from "./Page.ts"
import { PromptId } from "./Prompt.ts"
import { maxInt32 } from "./Sizes.ts"
import { Timestamp } from "./Timestamp.ts"
import { Uuid } from "./Uuid.ts"

export const VersionId = Uuid.pipe(Schema.brand("VersionId")).annotate({ description: "Id of the version." })
export type VersionId = typeof VersionId.Type

/** The largest version number: version numbers are 32-bit integers. */
export const maxVersionNumber = maxInt32

export const VersionNumber = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxVersionNumber }))
  .pipe(Schema.brand("VersionNumber"))
  .annotate({ description: "Number of the version, starting at 1 for each prompt." })
export type VersionNumber = typeof VersionNumber.Type

/** A JSON object with any members. Does not check the values of the members, because PostgreSQL stores only JSON. */
const Metadata = Schema.Record(Schema.String, Schema.Any as Schema.Codec<Schema.Json>).annotate({
  description: "Free-form JSON object."
})

/** A version with its content (specification 2.6). `parent_version_id` is null if the version has no parent. */
export const Version = Schema.Struct({
  id: VersionId,
  prompt_id: PromptId,
  version_number: VersionNumber,
  content: Schema.String.annotate({
    description: "Content of the prompt in this version.",
    examples: ["You are a support agent of {{shop}}."]
  }),
  change_summary: Schema.String.annotate({
    description: "Description of the change.",
    examples: ["Name the shop"]
  }),
  change_source: Schema.String.annotate({
    description: "Origin of the change.",
    examples: ["manual", "ai-improve"]
  }),
  parent_version_id: Schema.NullOr(VersionId).annotate({
    description: "Id of the version that this version was made from, or null."
  }),
  metadata: Metadata,
  created_at: Timestamp
}).annotate({ identifier: "Version", description: "A version of a prompt with its content." })
export type Version = typeof Version.Type

/** An item of the version list, without content (specification 2.5). */
export const VersionSummary = Schema.Struct(
  Struct.pick(Version.fields, ["version_number", "change_summary", "change_source", "created_at"])
).annotate({ identifier: "VersionSummary", description: "An item of the version list, without content." })
export type VersionSummary = typeof VersionSummary.Type

/** The workspace has no such prompt or version, or its tier does not include the version (specification 4.5). */
export const VersionNotFound = { _tag: "VersionNotFound" } as const
export type VersionNotFound = typeof VersionNotFound

/** Parses a version number with `parsePositiveInt`. Returns `undefined` for a number over `maxVersionNumber`. */
export const parseVersionNumber = (text: string): VersionNumber | undefined => {
  const number = parsePositiveInt(text)
  return number !== undefined && number <= maxVersionNumber ? (number as VersionNumber) : undefined
}
