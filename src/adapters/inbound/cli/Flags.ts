import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import { ApiKeyId } from "../../../domain/ApiKey.ts"
import { Tier } from "../../../domain/Billing.ts"
import { parseUuid } from "../../../domain/Uuid.ts"
import { fitsName, maxNameLength } from "../../../domain/Workspace.ts"
import { WorkspaceId } from "../../../domain/WorkspaceId.ts"

/** Parses the UUID of a workspace, in any case. */
const parseWorkspaceId = (text: string): Option.Option<WorkspaceId> =>
  Option.map(Option.fromUndefinedOr(parseUuid(text)), (id) => WorkspaceId.make(id))

/** Parses the UUID of a key, in any case. */
const parseApiKeyId = (text: string): Option.Option<ApiKeyId> =>
  Option.map(Option.fromUndefinedOr(parseUuid(text)), (id) => ApiKeyId.make(id))

const expectUuid = (): string => "a UUID"

/** True for an email address of at most `maxNameLength` characters. */
export const isEmail = (text: string): boolean => /^[^\s@]+@[^\s@]+$/.test(text) && fitsName(text)

export const expectEmail = (): string => `an email address of at most ${maxNameLength} characters`

/** True for the name of a workspace: 1 to `maxNameLength` characters. */
export const isWorkspaceName = (text: string): boolean => text !== "" && fitsName(text)

export const expectWorkspaceName = (): string => `1 to ${maxNameLength} characters`

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
  Flag.filterMap(parseWorkspaceId, expectUuid)
)

/** `--tier`. */
export const tier = Flag.Literals("tier", Tier.literals)

/** The id of a workspace as an argument. */
export const workspaceArgument = Argument.String("id").pipe(
  Argument.withDescription("Id of the workspace"),
  Argument.filterMap(parseWorkspaceId, expectUuid)
)

/** The id of a key as an argument. */
export const keyArgument = Argument.String("key-id").pipe(
  Argument.withDescription("Id of the key, as shown by keys list"),
  Argument.filterMap(parseApiKeyId, expectUuid)
)
