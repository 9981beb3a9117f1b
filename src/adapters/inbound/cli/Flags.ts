import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { ApiKeyId } from "../../../domain/ApiKey.ts"
import { Tier } from "../../../domain/Billing.ts"
import { WorkspaceId } from "../../../domain/Prompt.ts"
import { parseUuid } from "../../../domain/Uuid.ts"

/** A UUID in any case. */
const UuidText = Schema.String.check(
  Schema.makeFilter((text: string) => (parseUuid(text) === undefined ? "must be a UUID" : undefined))
)

const toWorkspaceId = (text: string): WorkspaceId => WorkspaceId.make(parseUuid(text)!)
const toApiKeyId = (text: string): ApiKeyId => ApiKeyId.make(parseUuid(text)!)

const maxLength256 = Schema.isMaxLength(256, { message: "must be at most 256 characters" })

/** The email of a user. */
export const Email = Schema.String.check(
  Schema.isPattern(/^[^\s@]+@[^\s@]+$/, { message: "must be an email address" }),
  maxLength256
)

/** The name of a workspace. */
export const WorkspaceName = Schema.String.check(
  Schema.isMinLength(1, { message: "must not be empty" }),
  maxLength256
)

/** Makes a flag optional: undefined if it is absent. */
export const optional = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  flag.pipe(Flag.optional, Flag.map(Option.getOrUndefined))

/** `--json`. */
export const json = Flag.Boolean("json").pipe(
  Flag.withDefault(false),
  Flag.withDescription("Print the result as JSON")
)

/** `--workspace`. */
export const workspace = Flag.String("workspace").pipe(
  Flag.withDescription("Id of the workspace"),
  Flag.withSchema(UuidText),
  Flag.map(toWorkspaceId)
)

/** `--tier`. */
export const tier = Flag.Literals("tier", Tier.literals)

/** The id of a workspace as an argument. */
export const workspaceArgument = Argument.String("id").pipe(
  Argument.withDescription("Id of the workspace"),
  Argument.withSchema(UuidText),
  Argument.map(toWorkspaceId)
)

/** The id of a key as an argument. */
export const keyArgument = Argument.String("key-id").pipe(
  Argument.withDescription("Id of the key, as shown by keys list"),
  Argument.withSchema(UuidText),
  Argument.map(toApiKeyId)
)
