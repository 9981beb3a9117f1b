import { BundleError, type BundledPrompt } from "../Bundle.ts"
import { PromptClientError, UnauthorizedError } from "../Errors.ts"
import { bundleFileName, parseBundleFile, renderBundle } from "./BundleFile.ts"
import { CommandError, printable, toUsageError } from "./CommandError.ts"
import { help, parseCommandLine, type PullOptions } from "./CommandLine.ts"
import { comparePrompts, renderDiff, summarize } from "./Comparison.ts"
import { nameConstants } from "./Identifiers.ts"
import { readIfExists, writeFiles } from "./OutputFiles.ts"
import { Progress } from "./Progress.ts"
import { readPrompts } from "./PromptReader.ts"
import { describeRenames, isTypesFile, readNames, renderTypes, typesFileName } from "./TypesFile.ts"

type Environment = Readonly<Record<string, string | undefined>>

/** Reads a file and converts its line endings to those of Unix. Returns `undefined` if the file does not exist. */
const readText = (directory: string, name: string): string | undefined =>
  readIfExists(directory, name)?.toString().replaceAll("\r\n", "\n")

/** Reads the prompts of the bundle in a directory. Resolves to `undefined` if the file does not exist. */
const readBundle = async (directory: string): Promise<ReadonlyArray<BundledPrompt> | undefined> => {
  const bytes = readIfExists(directory, bundleFileName)
  return bytes && parseBundleFile(bytes)
}

/**
 * Reads the prompts of the bundle in a directory. Rejects with a `CommandError` if the bundle is missing or damaged.
 */
const requireBundle = async (directory: string): Promise<ReadonlyArray<BundledPrompt>> => {
  try {
    const prompts = await readBundle(directory)
    if (prompts !== undefined) return prompts
  } catch (error) {
    if (error instanceof BundleError) throw new CommandError(`${bundleFileName}: ${error.message}`)
    throw error
  }
  throw new CommandError(`there is no ${bundleFileName} in the directory of --out; run 'pull'`)
}

/**
 * Reads the prompts from the service. Rejects with a `CommandError` if a flag, a variable or the key is invalid, if a
 * request fails, or if no prompt matches and `--allow-empty` is not set.
 */
const readService = async (
  options: PullOptions,
  apiKey: string | undefined
): Promise<ReadonlyArray<BundledPrompt>> => {
  if (!apiKey)
    throw toUsageError("the environment variable PROMPT_RETRIEVAL_KEY is required: set it to an API key")
  const progress = new Progress()
  try {
    const prompts = await readPrompts({ ...options, apiKey }, progress)
    if (prompts.length > 0 || options.allowEmpty) return prompts
  } catch (error) {
    // The client's constructor throws a `TypeError` for an invalid option.
    if (error instanceof TypeError) {
      throw toUsageError(
        error.message.startsWith("apiKey")
          ? "PROMPT_RETRIEVAL_KEY must be an API key without spaces or line breaks"
          : "--base-url or PROMPT_RETRIEVAL_URL must be an http or https URL without credentials, query or fragment"
      )
    }
    if (error instanceof UnauthorizedError)
      throw new CommandError(`${error.message}; check PROMPT_RETRIEVAL_KEY`)
    if (error instanceof PromptClientError) throw new CommandError(error.message)
    throw error
  } finally {
    progress.end()
  }
  throw new CommandError("no prompt matches; check --tag and --type, or allow it with --allow-empty")
}

const describeConstants = (
  types: string | undefined,
  prompts: ReadonlyArray<BundledPrompt>
): ReadonlyArray<string> => describeRenames(readNames(types ?? ""), nameConstants(prompts))

const write = async (options: PullOptions, env: Environment): Promise<void> => {
  const previous = new Map([bundleFileName, typesFileName].map((name) => [name, readText(options.out, name)]))
  const previousTypes = previous.get(typesFileName)
  if (previousTypes !== undefined && !isTypesFile(previousTypes)) {
    throw toUsageError(
      `--out must not contain a ${typesFileName} that pull has not written: choose another directory`
    )
  }
  // A damaged bundle is treated as empty and replaced.
  const before = (await readBundle(options.out).catch(() => undefined)) ?? []
  const prompts = await readService(options, env.PROMPT_RETRIEVAL_KEY)
  const files = new Map([
    [bundleFileName, renderBundle(prompts)],
    [typesFileName, renderTypes(prompts)]
  ])
  for (const [name, text] of files) if (text === previous.get(name)) files.delete(name)
  if (files.size > 0) writeFiles(options.out, files)
  const summary = summarize(comparePrompts(before, prompts))
  const changes = files.size === 0 ? "unchanged" : summary || "rewritten"
  const count = `${prompts.length} ${prompts.length === 1 ? "prompt" : "prompts"}`
  process.stdout.write([`${count}: ${changes}`, ...describeConstants(previousTypes, prompts), ""].join("\n"))
}

const check = async (options: PullOptions, env: Environment): Promise<void> => {
  const before = await requireBundle(options.out)
  const types = readText(options.out, typesFileName)
  const prompts = await readService(options, env.PROMPT_RETRIEVAL_KEY)
  const comparison = comparePrompts(before, prompts)
  const summary = summarize(comparison)
  if (summary === "" && types === renderTypes(before)) return
  process.stdout.write(renderDiff(comparison))
  process.stdout.write(
    describeConstants(types, prompts)
      .map((line) => `${line}\n`)
      .join("")
  )
  throw new CommandError(
    summary === ""
      ? `${typesFileName} does not belong to ${bundleFileName}; run 'pull' again`
      : `the service differs from ${bundleFileName}: ${summary}; run 'pull' and review the change`
  )
}

const verifyFrozen = async ({ out }: PullOptions): Promise<void> => {
  if (readText(out, typesFileName) !== renderTypes(await requireBundle(out))) {
    throw new CommandError(`${typesFileName} does not belong to ${bundleFileName}; run 'pull' again`)
  }
}

const modes = { write, check, frozen: verifyFrozen } as const

/**
 * Runs the command `pull` with the arguments after the program's name. Prints to stdout and stderr. Resolves to the
 * exit code: 0 for success, 1 for a failure or a difference, 2 for a wrong command line.
 */
export const runPull = async (args: ReadonlyArray<string>, env: Environment): Promise<number> => {
  try {
    const options = parseCommandLine(args, env)
    if (options === undefined) process.stdout.write(help)
    else await modes[options.mode](options, env)
    return 0
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const key = env.PROMPT_RETRIEVAL_KEY
    const message = key ? error.message.replaceAll(key, "[API key]") : error.message
    process.stderr.write(`prompt-retrieval-client: ${printable(message)}\n`)
    return error.exitCode
  }
}
