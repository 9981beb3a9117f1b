import * as Flag from "effect/cli/Flag"
import * as Schema from "effect/Schema"
import { Tier } from "../../../domain/Billing.ts"
import { WorkspaceId } from "../../../domain/Prompt.ts"
import { parseUuid } from "../../../domain/Uuid.ts"

/** An id that an operator typed, in any case. */
export const IdText = Schema.String.check(
  Schema.makeFilter((text: string) => (parseUuid(text) === undefined ? "must be a UUID" : undefined))
)

/** The email of a user. */
export const Email = Schema.String.check(
  Schema.isPattern(/^[^\s@]+@[^\s@]+$/, { message: "must be an email address" }),
  Schema.isMaxLength(256, { message: "must be at most 256 characters" })
)

export const json = Flag.Boolean("json").pipe(
  Flag.withDefault(false),
  Flag.withDescription("Print the result as JSON")
)

export const workspace = Flag.String("workspace").pipe(
  Flag.withDescription("Id of the workspace"),
  Flag.withSchema(IdText),
  Flag.map((text) => WorkspaceId.make(parseUuid(text)!))
)

export const tier = Flag.Literals("tier", Tier.literals)
