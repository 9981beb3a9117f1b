import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Argument from "effect/cli/Argument"
import * as CliError from "effect/cli/CliError"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { keyPrefix } from "../../../../domain/ApiKey.ts"
import { fitsName, sizes } from "../../../../domain/Sizes.ts"
import { isRepresentable, type Timestamp, toTimestamp } from "../../../../domain/Timestamp.ts"
import { workspaceVariable } from "./Environment.ts"
import { parseTimeInput } from "./TimeInput.ts"

// A rule holds the arguments of `Flag.filter` and `Argument.filter`: a check and a description of valid values.

const isName = (text: string): boolean => text !== "" && fitsName(text)

export const nameRule = [isName, () => `1 to ${sizes.nameLength} characters`] as const

export const emailRule = [
  (text: string): boolean => /^[^\s@]+@[^\s@]+$/.test(text) && fitsName(text),
  () => `an email address of at most ${sizes.nameLength} characters`
] as const

/**
 * Rejects an empty path, for example from an unset shell variable. Node would resolve an empty path to the current
 * directory.
 */
const pathRule = [(text: string): boolean => text !== "", () => "a path that is not empty"] as const

export const pathFlag = (name: string) => Flag.String(name).pipe(Flag.filter(...pathRule))

export const pathArgument = (name: string, description: string) =>
  Argument.String(name).pipe(Argument.withDescription(description), Argument.filter(...pathRule))

/** Makes a flag optional. Without the flag, the value is undefined. */
export const optional = <A>(flag: Flag.Flag<A>, description: string): Flag.Flag<A | undefined> =>
  flag.pipe(Flag.withDefault(undefined), Flag.withDescription(description))

export const booleanFlag = (name: string, description: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(Flag.withDefault(false), Flag.withDescription(description))

export const json = booleanFlag("json", "Print the result as JSON")

/** The id or name of the workspace that the environment selects; undefined if the variable is unset. */
export const defaultWorkspace: Effect.Effect<string | undefined> = Config.option(
  Config.String(workspaceVariable)
).pipe(Effect.orDie, Effect.map(Option.getOrUndefined))

const requireDefaultWorkspace = Effect.flatMap(defaultWorkspace, (workspace) =>
  workspace !== undefined
    ? Effect.succeed(workspace)
    : new CliError.ValidationError({ message: `--workspace is required unless ${workspaceVariable} is set` })
)

/** The flag `--workspace` without a default. */
export const explicitWorkspace = Flag.String("workspace").pipe(
  Flag.withMetavar("<id|name>"),
  Flag.filter(...nameRule)
)

export const workspace = explicitWorkspace.pipe(
  Flag.withDefault(requireDefaultWorkspace),
  Flag.withDescription(`Id or unique name of the workspace (default: $${workspaceVariable})`)
)

/** Makes an optional `--workspace` flag. `purpose` is the part of the help that says what the workspace is for. */
export const workspaceFor = (purpose: string) =>
  explicitWorkspace.pipe(
    Flag.withDefault(defaultWorkspace),
    Flag.withDescription(
      `Id or unique name of the workspace, for ${purpose} (default: $${workspaceVariable})`
    )
  )

export const keyArgument = Argument.String("key").pipe(
  Argument.withDescription("Id of the key, or its name if no other working key of the workspace has it"),
  // Rejects an API key, because the shell saves the command line in its history.
  Argument.filter(
    (text) => isName(text) && !text.startsWith(keyPrefix),
    () => "the id or the name of a key, as shown by 'prompt-retrieval keys list', not the key itself"
  )
)

/** Makes a flag whose value must have a certain form. `parse` returns undefined for a text without this form. */
export const parsedFlag = <A>(
  name: string,
  parse: (text: string) => A | undefined,
  form: string
): Flag.Flag<A> =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(parse(text)),
      () => form
    )
  )

/** Makes a flag whose value is a time. The current time is a valid value only if `acceptsNow` is true. */
export const timeFlag = (name: string, acceptsNow = false): Flag.Flag<Timestamp> =>
  parsedFlag(
    name,
    parseTimeInput,
    "a time such as 2027-01-31T12:00Z, a date such as 2027-01-31, or a duration such as 90d, 12h or 30m"
  ).pipe(
    Flag.mapEffect(
      Effect.fnUntraced(function* (toInstant) {
        const now = yield* Clock.currentTimeMillis
        const instant = toInstant(now)
        if (instant < now || (instant === now && !acceptsNow))
          return yield* new CliError.ValidationError({ message: `--${name} must be in the future` })
        if (!isRepresentable(instant))
          return yield* new CliError.ValidationError({ message: `--${name} must be before the year 10000` })
        return toTimestamp(instant)
      })
    )
  )
