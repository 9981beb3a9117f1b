import type { UserHasActiveKeys } from "../../../../application/ports/WorkspaceStore.ts"
import type { UnimportedFiles } from "../../../../application/transfer/FileExport.ts"
import type { ConflictingEdits } from "../../../../application/transfer/FileImport.ts"
import type { InvalidFiles } from "../../../../application/transfer/PromptFile.ts"
import type { ResolvedTooLarge } from "../../../../domain/Resolution.ts"
import { sizes } from "../../../../domain/Sizes.ts"
import { type InvalidContent, maxArchiveBytes, maxProblems } from "../../../../domain/WorkspaceContent.ts"
import { type ApiError, describeError } from "../../contract/Errors.ts"
import { CommandError, type ResultExit, unavailableMessage } from "./CommandError.ts"
import { pluralize, quote, toPrintable } from "./Output.ts"

/** The flag `--json`, and the parts of a command's input that appear in error messages: ids, names and paths. */
export interface CommandInput {
  readonly json?: boolean
  readonly workspace?: string | undefined
  readonly email?: string
  readonly key?: string
  readonly prompt?: string
  readonly path?: string
  readonly directory?: string
  readonly out?: string | undefined
}

/**
 * Lists at most `maxProblems` problems, one per line, and then the number of further problems. Each line starts with
 * the path of the problem, or with `source` if the path is empty.
 */
const describeProblems = (
  source: string,
  { problems, count }: Pick<InvalidContent, "problems" | "count">,
  consequence = "nothing was imported; "
): string =>
  [
    `${consequence}${source} has ${pluralize(count, "problem")}:`,
    ...problems
      .slice(0, maxProblems)
      .map(({ path, message }) => toPrintable(`${path === "" ? source : path}: ${message}`)),
    ...(count > maxProblems ? [`… and ${count - maxProblems} more`] : [])
  ].join("\n")

/** Unlike `describeProblems`, lists every line, because the operator must decide about each line. */
const listAll = (heading: string, lines: ReadonlyArray<string>, remedy: string): string =>
  [heading, ...lines.map(toPrintable), remedy].join("\n")

const describeMissing = (kind: "key" | "user" | "workspace", name = ""): string =>
  `there is no ${kind} ${quote(name)}; see 'prompt-retrieval ${kind}s list'`

/** The messages for errors of the use cases. `quote` and `toPrintable` make each part safe for a terminal. */
const messages = {
  ArchiveTooLarge: () =>
    `the archive is larger than ${maxArchiveBytes / 2 ** 20} MiB; copy the database with pg_dump instead`,
  ConflictingEdits: ({ edits }: ConflictingEdits) =>
    listAll(
      "nothing was imported; the import would undo what was changed in the workspace since the latest import:",
      edits.map(({ path, message }) => `${path}: ${message}`),
      "Export with --format files --update, merge with git, and import the result, or undo the changes with --overwrite."
    ),
  InvalidContent: (error: InvalidContent) => describeProblems("the archive", error),
  InvalidFiles: (error: InvalidFiles, { path, directory, out = "" }: CommandInput) => {
    if (path !== undefined) return describeProblems(path, error)
    if (directory !== undefined) return describeProblems(directory, error, "")
    return describeProblems(out, error, "nothing was written; ")
  },
  KeyNotFound: (_: unknown, { key }: CommandInput) => describeMissing("key", key),
  KeyEnded: (_: unknown, { key = "" }: CommandInput) =>
    `key ${quote(key)} is revoked or has expired; issue a new key with 'prompt-retrieval keys issue'`,
  KeyUnassigned: (_: unknown, { key = "" }: CommandInput) =>
    `key ${quote(key)} belongs to no workspace; issue a new key with 'prompt-retrieval keys issue'`,
  PromptNotFound: (_: unknown, { prompt = "", workspace = "" }: CommandInput) =>
    `workspace ${quote(workspace)} has no prompt ${quote(prompt)}; see 'prompt-retrieval prompts list'`,
  ResolvedTooLarge: ({ id }: ResolvedTooLarge) =>
    `the resolved content of prompt ${id} is larger than ${sizes.contentBytes / 2 ** 20} MiB; shorten the prompt or its fragments`,
  Unavailable: () => unavailableMessage,
  UnimportedFiles: ({ paths }: UnimportedFiles) =>
    listAll(
      "nothing was written; these files were added or edited since the latest import, and the workspace differs from them:",
      paths,
      "Export into the files that were imported last and merge with git, or replace and remove these files with --overwrite."
    ),
  UserHasActiveKeys: ({ count }: UserHasActiveKeys, { email = "" }: CommandInput) => {
    const them = count === 1 ? "it" : "them"
    return `${quote(email)} owns ${pluralize(count, "active key")}; revoke ${them} first, or add --yes to delete ${them} too`
  },
  UserNotFound: (_: unknown, { email }: CommandInput) => describeMissing("user", email),
  WorkspaceNotFound: (_: unknown, { workspace }: CommandInput) => describeMissing("workspace", workspace)
}

/** The errors with which commands can fail. An API error without a message above gets the message of the HTTP API. */
export type Failure = CommandError | ResultExit | ApiError | { readonly _tag: keyof typeof messages }

type Describe = (error: Failure, input: CommandInput) => string

/** Converts a failure to the error that ends the command. */
export const toExitError = (error: Failure, input: CommandInput): CommandError | ResultExit => {
  if ("exitCode" in error) return error
  const describe = messages[error._tag as keyof typeof messages] as Describe | undefined
  return new CommandError({ message: describe?.(error, input) ?? describeError(error as ApiError).message })
}
