#!/usr/bin/env node
import { type BundledPrompt, BundleError } from "../Bundle.ts"
import { PromptClientError, UnauthorizedError } from "../Errors.ts"
import { bundleFileName, parseBundleFile, renderBundle } from "./BundleFile.ts"
import { CommandError, printable, toUsageError } from "./CommandError.ts"
import { help, type PullOptions, parseCommandLine } from "./CommandLine.ts"
import { readText, writeFiles } from "./OutputFiles.ts"
import { readPrompts } from "./PromptReader.ts"
import { isTypesFile, renderTypes, typesFileName } from "./TypesFile.ts"

/** Reads the prompts of a directory's bundle. Rejects with a `CommandError` if the bundle is missing or damaged. */
const readBundle = async (directory: string): Promise<ReadonlyArray<BundledPrompt>> => {
  const text = readText(directory, bundleFileName)
  if (text === undefined)
    throw new CommandError(`there is no ${bundleFileName} in the directory of --out; run 'pull'`)
  return parseBundleFile(text).catch((error) => {
    throw error instanceof BundleError ? new CommandError(`${bundleFileName}: ${error.message}`) : error
  })
}

/**
 * Reads the prompts from the service. Rejects with a `CommandError` if a flag, a variable or the key is invalid, if a
 * request fails, or if no prompt matches and `--allow-empty` is not set.
 */
const readService = async (options: PullOptions): Promise<ReadonlyArray<BundledPrompt>> => {
  const prompts = await readPrompts(options).catch((error) => {
    if (error instanceof UnauthorizedError)
      throw new CommandError(`${error.message}; check PROMPT_RETRIEVAL_KEY`)
    throw error instanceof PromptClientError ? new CommandError(error.message) : error
  })
  if (prompts.length > 0 || options.allowEmpty) return prompts
  throw new CommandError("no prompt matches; check --tag and --type, or allow it with --allow-empty")
}

/** Reads the prompts, and returns the files that would change. */
const listChanges = async (options: PullOptions) => {
  const prompts = await readService(options)
  const files = new Map([
    [bundleFileName, renderBundle(prompts)],
    [typesFileName, renderTypes(prompts)]
  ])
  for (const [name, text] of files) if (text === readText(options.out, name)) files.delete(name)
  return { prompts, files }
}

const printResult = ({ length }: ReadonlyArray<BundledPrompt>, result: string): void =>
  void process.stdout.write(`${length} ${length === 1 ? "prompt" : "prompts"}: ${result}\n`)

const write = async (options: PullOptions): Promise<void> => {
  if (!isTypesFile(readText(options.out, typesFileName) ?? renderTypes([]))) {
    throw toUsageError(
      `--out must not contain a ${typesFileName} that pull has not written: choose another directory`
    )
  }
  const { prompts, files } = await listChanges(options)
  if (files.size > 0) writeFiles(options.out, files)
  printResult(prompts, `${files.size > 0 ? [...files.keys()].join(" and ") : "nothing"} changed`)
}

/** Prints the names of the prompts that differ, one per line. If nothing differs, prints one line that says so. */
const check = async (options: PullOptions): Promise<void> => {
  const bundled = await readBundle(options.out)
  const { prompts, files } = await listChanges(options)
  if (files.size === 0) return printResult(prompts, "nothing differs")
  const toHashes = (prompts: ReadonlyArray<BundledPrompt>) =>
    new Map(prompts.map(({ name, sha256 }) => [name, sha256]))
  const [before, after] = [toHashes(bundled), toHashes(prompts)]
  const names = [...new Set([...before.keys(), ...after.keys()])].sort()
  for (const name of names) if (before.get(name) !== after.get(name)) process.stdout.write(`${name}\n`)
  throw new CommandError(
    `the service differs from ${[...files.keys()].join(" and ")}; run 'pull' and review the change`
  )
}

const verifyFrozen = async ({ out }: PullOptions): Promise<void> => {
  if (readText(out, typesFileName) !== renderTypes(await readBundle(out))) {
    throw new CommandError(`${typesFileName} does not belong to ${bundleFileName}; run 'pull' again`)
  }
}

/**
 * Runs the command `pull` with the arguments after the program's name. Prints to stdout and stderr. Resolves to the
 * exit code: 0 for success, 1 for a failure or a difference, 2 for a wrong command line.
 */
const runPull = async (args: ReadonlyArray<string>): Promise<number> => {
  try {
    const options = parseCommandLine(args)
    if (options === undefined) process.stdout.write(help)
    else if (options.frozen) await verifyFrozen(options)
    else await (options.check ? check : write)(options)
    return 0
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const key = process.env.PROMPT_RETRIEVAL_KEY
    const message = key ? error.message.replaceAll(key, "[API key]") : error.message
    process.stderr.write(`prompt-retrieval-client: ${printable(message)}\n`)
    return error.exitCode
  }
}

process.exitCode = await runPull(process.argv.slice(2))
