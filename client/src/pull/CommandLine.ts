import { parseArgs } from "node:util"
import { defaultOptions } from "../Options.ts"
import type { PromptType } from "../Resources.ts"
import { toUsageError } from "./CommandError.ts"

export interface PullOptions {
  /** True to compare the prompts with the files. */
  readonly check: boolean
  /** True to verify the files without a request. */
  readonly frozen: boolean
  readonly tag: string | undefined
  readonly type: PromptType | undefined
  /** True to succeed even if no prompt matches. */
  readonly allowEmpty: boolean
  /** The directory that contains `prompts.bundle.json` and `prompts.ts`. */
  readonly out: string
  /** Default: the environment variable `PROMPT_RETRIEVAL_URL`, or the default of the client. */
  readonly baseUrl: string | undefined
}

const promptTypes = ["system", "user", "assistant", "template", "few-shot", "chain-of-thought"] as const

export const help = `Usage: npx --no @prompt-retrieval/client pull [flags]

Writes the prompts of the API key's workspace to two files, to be committed:
  prompts.bundle.json    resolved contents with versions and hashes
  prompts.ts             a typed constant for each prompt

Flags:
  --tag NAME         Only prompts with the tag of this name
  --type TYPE        Only prompts of this type: ${promptTypes.join(", ")}
  --out DIR          Directory of the files (default: the current directory)
  --base-url URL     URL of the service (default: PROMPT_RETRIEVAL_URL)
  --allow-empty      Do not fail if no prompt matches
  --check            Write nothing; print the names that differ and exit with 1 if the files would change
  --frozen           Send no request; exit with 1 if the files are damaged or do not belong together
  --help             Show this help

Environment:
  PROMPT_RETRIEVAL_KEY    API key of the service; required without --frozen
  PROMPT_RETRIEVAL_URL    URL of the service (default: ${defaultOptions.baseUrl})

Exit codes: 0 success; 1 failure or difference; 2 wrong command line
`

const flags = {
  tag: { type: "string" },
  type: { type: "string" },
  out: { type: "string" },
  "base-url": { type: "string" },
  "allow-empty": { type: "boolean" },
  check: { type: "boolean" },
  frozen: { type: "boolean" }
} as const

/** Parses flags. The message of an error must not contain a value, because the value can be a misplaced API key. */
const parseFlags = (args: Array<string>) => {
  try {
    const { values, positionals } = parseArgs({ args, options: flags, allowPositionals: true })
    if (positionals.length === 0) return values
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === "ERR_PARSE_ARGS_INVALID_OPTION_VALUE") throw toUsageError(message.replace(/\.?\n.*/s, ""))
    const known = Object.keys(flags).map((flag) => `--${flag}`)
    throw toUsageError(`unknown flag; the flags are ${known.join(", ")}`)
  }
  throw toUsageError("pull takes only flags, which begin with --")
}

/**
 * Parses the arguments after the program's name. Returns `undefined` if the arguments ask for help. Throws a
 * `CommandError` if they are invalid. The message never contains a value, because the value can be a misplaced API key.
 */
export const parseCommandLine = (args: ReadonlyArray<string>): PullOptions | undefined => {
  const [command, ...others] = args
  if (args.includes("--help") || args.includes("-h") || command === "help") return undefined
  if (command !== "pull") throw toUsageError("the command must be 'pull'")
  if (others.some((arg) => arg.startsWith("--api-key")))
    throw toUsageError(
      "there is no flag --api-key, because other users can read the flags of a process: set PROMPT_RETRIEVAL_KEY"
    )
  const { "allow-empty": allowEmpty = false, "base-url": baseUrl, ...values } = parseFlags(others)
  const { check = false, frozen = false, tag, out } = values
  const type = promptTypes.find((type) => type === values.type)
  if (values.type !== type) throw toUsageError(`--type must be one of ${promptTypes.join(", ")}`)
  if (frozen && (check || allowEmpty || baseUrl || tag || type))
    throw toUsageError("--frozen reads no prompts: leave out all other flags except --out")
  return { check, frozen, allowEmpty, tag, type, out: out || ".", baseUrl: baseUrl || undefined }
}
