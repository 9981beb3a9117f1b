import * as Argument from "effect/cli/Argument"
import * as CliError from "effect/cli/CliError"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { keyPrefix } from "../../../../domain/ApiKey.ts"
import { Tier } from "../../../../domain/Billing.ts"
import { fitsName, sizes } from "../../../../domain/Sizes.ts"
import { workspaceVariable } from "./Environment.ts"

export const isEmail = (text: string): boolean => /^[^\s@]+@[^\s@]+$/.test(text) && fitsName(text)

export const describeEmail = (): string => `an email address of at most ${sizes.nameLength} characters`

export const isName = (text: string): boolean => text !== "" && fitsName(text)

export const describeName = (): string => `1 to ${sizes.nameLength} characters`

export const optional = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  flag.pipe(Flag.optional, Flag.map(Option.getOrUndefined))

export const booleanFlag = (name: string, description: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(Flag.withDefault(false), Flag.withDescription(description))

export const json = booleanFlag("json", "Print the result as JSON")

/** The id or name of the workspace that the environment selects; undefined if none is set. */
export const defaultWorkspace: Effect.Effect<string | undefined> = Config.option(
  Config.String(workspaceVariable)
).pipe(Effect.orDie, Effect.map(Option.getOrUndefined))

const requireDefaultWorkspace = Effect.flatMap(defaultWorkspace, (workspace) =>
  workspace === undefined
    ? Effect.fail(
        new CliError.ValidationError({
          message: `--workspace is required unless ${workspaceVariable} is set`
        })
      )
    : Effect.succeed(workspace)
)

/** The flag `--workspace` without a default. The value is an id or a name, for `administerWorkspace`. */
export const explicitWorkspace = Flag.String("workspace").pipe(
  Flag.withMetavar("<id|name>"),
  Flag.filter(isName, describeName)
)

/** The flag `--workspace`. The value is an id or a name, for `administerWorkspace`. */
export const workspace = explicitWorkspace.pipe(
  Flag.withDefault(requireDefaultWorkspace),
  Flag.withDescription(`Id or unique name of the workspace (default: $${workspaceVariable})`)
)

/** The flag `--workspace` of a command that needs a workspace only to find a key by its name. */
export const keyWorkspace = explicitWorkspace.pipe(
  Flag.withDefault(defaultWorkspace),
  Flag.withDescription(
    `Id or unique name of the workspace, for a key that is given by its name (default: $${workspaceVariable})`
  )
)

export const tier = Flag.Literals("tier", Tier.literals)

/** The id or the unique name of a workspace as an argument, for `administerWorkspace`. */
export const workspaceArgument = Argument.String("workspace").pipe(
  Argument.withDescription("Id or unique name of the workspace"),
  Argument.filter(isName, describeName)
)

/** The id or the unique name of a key as an argument, for `administerKey`. */
export const keyArgument = Argument.String("key").pipe(
  Argument.withDescription("Id of the key, or its name if no other working key of the workspace has it"),
  // An API key is rejected, because the shell saves the command line in its history.
  Argument.filter(
    (text) => isName(text) && !text.startsWith(keyPrefix),
    () => "the id or the name of a key, as shown by 'prompt-retrieval keys list', not the key itself"
  )
)
