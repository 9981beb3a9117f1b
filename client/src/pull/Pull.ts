import { BundleError } from "../Bundle.ts"
import { PromptClientError, UnauthorizedError } from "../Errors.ts"
import {
  bundleFileName,
  hashPieces,
  type KnownPrompt,
  listKnownPrompts,
  type PromptIdentity,
  parseBundleFile,
  type RenderedPrompt,
  renderBundle,
  withUnixLineEndings
} from "./BundleFile.ts"
import { CommandError, printable, toUsageError } from "./CommandError.ts"
import { help, parseCommandLine, type PullOptions } from "./CommandLine.ts"
import { comparePrompts, renderDiff, summarize } from "./Comparison.ts"
import { nameConstants } from "./Identifiers.ts"
import { collectGarbage } from "./Memory.ts"
import { readIfExists, writeFiles } from "./OutputFiles.ts"
import { Progress } from "./Progress.ts"
import { readPrompts } from "./PromptReader.ts"
import { describeRenames, isTypesFile, readNames, renderTypes, typesFileName } from "./TypesFile.ts"

type Environment = Readonly<Record<string, string | undefined>>

/** The files of an earlier `pull`. */
interface ExistingFiles {
  /** The prompts of the bundle, the error that refuses it, or `undefined` if there is no file. */
  readonly bundle: ReadonlyArray<RenderedPrompt> | BundleError | undefined
  /** The text of `prompts.ts` with the line endings of Unix; `undefined` if there is no file. */
  readonly types: string | undefined
}

const readExisting = async (directory: string): Promise<ExistingFiles> => {
  const bytes = readIfExists(directory, bundleFileName)
  const bundle =
    bytes &&
    (await parseBundleFile(bytes).catch((error) => {
      if (error instanceof BundleError) return error
      throw error
    }))
  return { bundle, types: readTypes(directory) }
}

const readTypes = (directory: string): string | undefined =>
  readIfExists(directory, typesFileName)?.toString().replaceAll("\r\n", "\n")

/** Reads the prompts of the service. Rejects with a `CommandError` that gives the remedy. */
const readService = async (
  options: PullOptions,
  apiKey: string | undefined
): Promise<ReadonlyArray<RenderedPrompt>> => {
  if (!apiKey)
    throw toUsageError("the environment variable PROMPT_RETRIEVAL_KEY is required: set it to an API key")
  const progress = new Progress()
  try {
    collectGarbage()
    return await readPrompts({ ...options, apiKey }, progress)
  } catch (error) {
    // The client's constructor throws these for its options.
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
}

const pluralize = (count: number): string => `${count} ${count === 1 ? "prompt" : "prompts"}`

/**
 * Reads what `write` needs of the existing files: the ids and hashes of the bundle's prompts, and the hash of the
 * file with the line endings of Unix. Does not parse the bundle, so that a large one needs less memory.
 */
const readKnown = (directory: string) => {
  const bytes = readIfExists(directory, bundleFileName)
  return {
    known: bytes === undefined ? [] : listKnownPrompts(bytes),
    bundleHash: bytes && hashPieces(withUnixLineEndings(bytes)),
    previousTypes: readTypes(directory)
  }
}

const write = async (options: PullOptions, env: Environment): Promise<number> => {
  const { known, bundleHash, previousTypes } = readKnown(options.out)
  if (previousTypes !== undefined && !isTypesFile(previousTypes)) {
    throw toUsageError(
      `--out must not contain a ${typesFileName} that pull has not written: choose another directory`
    )
  }
  const prompts = await readService(options, env.PROMPT_RETRIEVAL_KEY)
  const types = renderTypes(prompts)
  collectGarbage()
  const summary = summarize(comparePrompts<KnownPrompt>(known, prompts))
  const files = [
    ...(bundleHash === hashPieces(renderBundle(prompts))
      ? []
      : [{ name: bundleFileName, pieces: renderBundle(prompts) }]),
    ...(previousTypes === types ? [] : [{ name: typesFileName, pieces: [types] }])
  ]
  if (files.length > 0) writeFiles(options.out, files)
  const renames = describeRenames(readNames(previousTypes ?? ""), nameConstants(prompts))
  const changes = files.length === 0 ? "unchanged" : summary || "rewritten"
  process.stdout.write([`${pluralize(prompts.length)}: ${changes}`, ...renames, ""].join("\n"))
  return 0
}

/** Verifies the existing files. Forgets the texts of the bundle, so that they take no memory beside the new texts. */
const readIdentities = async (directory: string) => {
  const { bundle, types } = await readExisting(directory)
  const before = requireBundle(bundle).map(
    ({ id, title, slots, sha256 }): PromptIdentity => ({ id, title, slots, sha256 })
  )
  return { before, types }
}

const check = async (options: PullOptions, env: Environment): Promise<number> => {
  const { before, types } = await readIdentities(options.out)
  const prompts = await readService(options, env.PROMPT_RETRIEVAL_KEY)
  const summary = summarize(comparePrompts<PromptIdentity>(before, prompts))
  if (summary === "" && types === renderTypes(before)) return 0
  const { bundle } = await readExisting(options.out)
  for (const diff of renderDiff(comparePrompts(requireBundle(bundle), prompts))) process.stdout.write(diff)
  const renames = describeRenames(readNames(types ?? ""), nameConstants(prompts))
  process.stdout.write(renames.map((line) => `${line}\n`).join(""))
  throw new CommandError(
    summary === ""
      ? `${typesFileName} does not belong to ${bundleFileName}; run 'pull' again`
      : `the service differs from ${bundleFileName}: ${summary}; run 'pull' and review the change`
  )
}

const verifyFrozen = async ({ out }: PullOptions): Promise<number> => {
  const { bundle, types } = await readExisting(out)
  if (types !== renderTypes(requireBundle(bundle))) {
    throw new CommandError(`${typesFileName} does not belong to ${bundleFileName}; run 'pull' again`)
  }
  return 0
}

const requireBundle = (bundle: ExistingFiles["bundle"]): ReadonlyArray<RenderedPrompt> => {
  if (bundle === undefined)
    throw new CommandError(`there is no ${bundleFileName} in the directory of --out; run 'pull'`)
  if (bundle instanceof BundleError) throw new CommandError(`${bundleFileName}: ${bundle.message}`)
  return bundle
}

const modes = { write, check, frozen: verifyFrozen } as const

/**
 * Runs the command `pull` with the arguments after the program's name. Prints to stdout and stderr. Resolves to the
 * exit code: 0 for success, 1 for a failure or a difference, 2 for a wrong command line.
 */
export const runPull = async (args: ReadonlyArray<string>, env: Environment): Promise<number> => {
  try {
    const options = parseCommandLine(args, env)
    if (options !== undefined) return await modes[options.mode](options, env)
    process.stdout.write(help)
    return 0
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const key = env.PROMPT_RETRIEVAL_KEY
    const message = key ? error.message.replaceAll(key, "[API key]") : error.message
    process.stderr.write(`prompt-retrieval-client: ${printable(message)}\n`)
    return error.exitCode
  }
}
