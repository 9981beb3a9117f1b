import { defaultOptions } from "../Options.ts"
import type { PromptType } from "../Resources.ts"
import { toUsageError } from "./CommandError.ts"

/**
 * What `pull` does with the prompts: write them, compare them with the files, or verify the files without a request.
 */
type Mode = "write" | "check" | "frozen"

export interface PullOptions {
  readonly mode: Mode
  readonly tag: string | undefined
  readonly type: PromptType | undefined
  /** True if `pull` succeeds even if no prompt matches. */
  readonly allowEmpty: boolean
  /** The directory that contains `prompts.bundle.json` and `prompts.ts`. */
  readonly out: string
  readonly baseUrl: string
}

const promptTypes: { readonly [Type in PromptType]: true } = {
  system: true,
  user: true,
  assistant: true,
  template: true,
  "few-shot": true,
  "chain-of-thought": true
}

export const help = `Usage: npx --no @prompt-retrieval/client pull [flags]

Writes the prompts of the API key's workspace to two files, to be committed:
  prompts.bundle.json    resolved contents with versions, ETags and hashes
  prompts.ts             a typed constant for each prompt

Flags:
  --tag NAME         Only prompts with the tag of this name
  --type TYPE        Only prompts of this type: ${Object.keys(promptTypes).join(", ")}
  --out DIR          Directory of the files (default: the current directory)
  --base-url URL     URL of the service (default: PROMPT_RETRIEVAL_URL)
  --allow-empty      Do not fail if no prompt matches
  --check            Write nothing; print a diff and exit with 1 if the service differs from the files
  --frozen           Send no request; exit with 1 if the files are damaged or do not belong together
  --help             Show this help

Environment:
  PROMPT_RETRIEVAL_KEY    API key of the service; required without --frozen
  PROMPT_RETRIEVAL_URL    URL of the service (default: ${defaultOptions.baseUrl})

Exit codes: 0 success; 1 failure or difference; 2 wrong command line
`

const valueFlags = ["tag", "type", "out", "base-url"] as const
const switches = ["allow-empty", "check", "frozen"] as const
type ValueFlag = (typeof valueFlags)[number]
type Switch = (typeof switches)[number]

const isValueFlag = (name: string): name is ValueFlag => (valueFlags as ReadonlyArray<string>).includes(name)
const isSwitch = (name: string): name is Switch => (switches as ReadonlyArray<string>).includes(name)

const parseType = (type: string | undefined): PromptType | undefined => {
  if (type === undefined || Object.hasOwn(promptTypes, type)) return type as PromptType | undefined
  throw toUsageError(`--type must be one of ${Object.keys(promptTypes).join(", ")}`)
}

/**
 * Parses the arguments after the program's name. Returns `undefined` if the arguments ask for help. Throws a
 * `CommandError` if they are invalid. The message never contains a value, because the value may be a key in the wrong
 * place.
 */
export const parseCommandLine = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string | undefined>>
): PullOptions | undefined => {
  const [command, ...flags] = args
  if (args.includes("--help") || args.includes("-h") || command === "help") return undefined
  if (command !== "pull") throw toUsageError("the command must be 'pull'")
  const values = new Map<ValueFlag, string>()
  const given = new Set<Switch>()
  while (flags.length > 0) {
    const [, name, inlineValue] = /^--([^=]+)(?:=(.*))?$/s.exec(flags.shift()!) ?? []
    if (name === undefined) throw toUsageError("pull takes only flags, which begin with --")
    if (name === "api-key") {
      throw toUsageError(
        "there is no flag --api-key, because other users can read the flags of a process: set PROMPT_RETRIEVAL_KEY"
      )
    }
    if (isSwitch(name)) {
      if (inlineValue !== undefined) throw toUsageError(`--${name} takes no value`)
      given.add(name)
    } else if (isValueFlag(name)) {
      const value = inlineValue ?? (flags[0]?.startsWith("--") ? undefined : flags.shift())
      if (!value) throw toUsageError(`--${name} needs a value`)
      if (values.has(name)) throw toUsageError(`--${name} must be given only once`)
      values.set(name, value)
    } else {
      const known = [...valueFlags, ...switches].map((flag) => `--${flag}`).join(", ")
      throw toUsageError(`unknown flag; the flags are ${known}`)
    }
  }
  const isFrozen = given.has("frozen")
  if (isFrozen && given.has("check")) throw toUsageError("--check and --frozen exclude each other")
  if (isFrozen && [...values.keys(), ...given].some((name) => !/^(out|frozen)$/.test(name))) {
    throw toUsageError("--frozen reads no prompts: leave out all other flags except --out")
  }
  return {
    mode: isFrozen ? "frozen" : given.has("check") ? "check" : "write",
    allowEmpty: given.has("allow-empty"),
    tag: values.get("tag"),
    type: parseType(values.get("type")),
    out: values.get("out") ?? ".",
    baseUrl: values.get("base-url") ?? (env.PROMPT_RETRIEVAL_URL || defaultOptions.baseUrl)
  }
}
