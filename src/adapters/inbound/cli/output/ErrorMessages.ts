import type { PromptNotFound } from "../../../../domain/Prompt.ts"
import type { ResolvedTooLarge } from "../../../../domain/Resolution.ts"
import { sizes } from "../../../../domain/Sizes.ts"
import {
  type ArchiveTooLarge,
  type InvalidContent,
  maxProblems
} from "../../../../domain/WorkspaceContent.ts"
import { maxArchiveBytes } from "../../../../application/transfer/Archive.ts"
import type { UnimportedFiles } from "../../../../application/transfer/FileExport.ts"
import type { ConflictingEdits } from "../../../../application/transfer/FileImport.ts"
import type { InvalidFiles } from "../../../../application/transfer/PromptFile.ts"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type {
  KeyNotFound,
  KeyEnded,
  KeyUnassigned,
  UserHasActiveKeys,
  UserNotFound,
  WorkspaceNotFound
} from "../../../../application/ports/WorkspaceStore.ts"
import { CommandError, type ExitError } from "./CommandError.ts"
import { pluralize, quote, toPrintable } from "./Output.ts"

export type Failure =
  | ArchiveTooLarge
  | ConflictingEdits
  | ExitError
  | InvalidContent
  | InvalidFiles
  | KeyNotFound
  | KeyEnded
  | KeyUnassigned
  | PromptNotFound
  | ResolvedTooLarge
  | Unavailable
  | UnimportedFiles
  | UserHasActiveKeys
  | UserNotFound
  | WorkspaceNotFound

/** The parts of a command's input that error messages name. */
export interface CommandInput {
  /** The id or name of a workspace. */
  readonly workspace?: string | undefined
  readonly email?: string
  /** The id or name of a key. */
  readonly key?: string
  /** The id, name or title of a prompt. */
  readonly prompt?: string
  readonly path?: string
  /** The directory that `check` reads. */
  readonly directory?: string
  readonly out?: string | undefined
}

/**
 * Lists at most `maxProblems` problems, one per line, and then the number of further problems. A line starts with the
 * path, or with the source if the path is empty.
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

/** Lists every line, because the operator must decide about each line. */
const listAll = (heading: string, lines: ReadonlyArray<string>, remedy: string): string =>
  [heading, ...lines.map(toPrintable), remedy].join("\n")

type Messages = {
  readonly [Tag in Exclude<Failure, ExitError>["_tag"]]: (
    error: Extract<Failure, { readonly _tag: Tag }>,
    input: CommandInput
  ) => string
}

const messages: Messages = {
  ArchiveTooLarge: () =>
    `the archive is larger than ${maxArchiveBytes / 2 ** 20} MiB; copy the database with pg_dump instead`,
  ConflictingEdits: ({ edits }) =>
    listAll(
      "nothing was imported; the import would undo what was changed in the workspace since the latest import:",
      edits.map(({ path, message }) => `${path}: ${message}`),
      "Export with --format files --update, merge with git, and import the result, or undo the changes with --overwrite."
    ),
  InvalidContent: (error) => describeProblems("the archive", error),
  InvalidFiles: (error, { path, directory, out = "" }) =>
    path !== undefined
      ? describeProblems(path, error)
      : directory !== undefined
        ? describeProblems(directory, error, "")
        : describeProblems(out, error, "nothing was written; "),
  KeyNotFound: (_, { key = "" }) => `there is no key ${quote(key)}; see 'prompt-retrieval keys list'`,
  KeyEnded: (_, { key = "" }) =>
    `key ${quote(key)} is revoked or has expired; issue a new key with 'prompt-retrieval keys issue'`,
  KeyUnassigned: (_, { key = "" }) =>
    `key ${quote(key)} belongs to no workspace; issue a new key with 'prompt-retrieval keys issue'`,
  PromptNotFound: (_, { prompt = "", workspace = "" }) =>
    `workspace ${quote(workspace)} has no prompt ${quote(prompt)}; see 'prompt-retrieval prompts list'`,
  ResolvedTooLarge: ({ id }) =>
    `the resolved content of prompt ${id} is larger than ${sizes.contentBytes / 2 ** 20} MiB; shorten the prompt or its fragments`,
  Unavailable: () => "the database cannot be reached",
  UnimportedFiles: ({ paths }) =>
    listAll(
      "nothing was written; these files were added or edited since the latest import, and the workspace differs from them:",
      paths,
      "Export into the files that were imported last and merge with git, or replace and remove these files with --overwrite."
    ),
  UserHasActiveKeys: ({ count }, { email = "" }) => {
    const them = count === 1 ? "it" : "them"
    return `${quote(email)} owns ${pluralize(count, "active key")}; revoke ${them} first, or add --yes to delete ${them} too`
  },
  UserNotFound: (_, { email = "" }) => `there is no user ${quote(email)}; see 'prompt-retrieval users list'`,
  WorkspaceNotFound: (_, { workspace = "" }) =>
    `there is no workspace ${quote(workspace)}; see 'prompt-retrieval workspaces list'`
}

/** Converts a failure to the error that ends the command. */
export const toExitError = (error: Failure, input: CommandInput): ExitError => {
  if ("exitCode" in error) return error
  const describe = messages[error._tag] as (error: Failure, input: CommandInput) => string
  return new CommandError({ message: describe(error, input) })
}
