import * as Data from "effect/Data"
import type { InvalidContent, Problem } from "../../../domain/Problem.ts"
import type { InvalidFiles } from "../../../application/formats/PromptFiles.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type {
  KeyNotFound,
  UserNotFound,
  WorkspaceNotFound
} from "../../../application/ports/WorkspaceStore.ts"
import type { ApiKeyId } from "../../../domain/ApiKey.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import type { CommandError, UsageError } from "./CommandError.ts"
import { printable } from "./Output.ts"

/** Every error that a command can fail with. */
export type Failure =
  | CommandError
  | InvalidContent
  | InvalidFiles
  | KeyNotFound
  | Unavailable
  | UsageError
  | UserNotFound
  | WorkspaceNotFound

/** The parts of a command's input that error messages name. */
export interface CommandInput {
  readonly workspace?: WorkspaceId | undefined
  readonly email?: string
  readonly key?: ApiKeyId
  readonly path?: string
}

interface ErrorSpec<E> {
  readonly exitCode: number
  readonly message: (error: E, input: CommandInput) => string
}

const failed = 1
const wrongUsage = 2

const maxProblemsShown = 100

const describeProblems = (source: string, problems: ReadonlyArray<Problem>, count: number): string => {
  const lines = problems
    .slice(0, maxProblemsShown)
    .map(({ path, message }) => printable(`${path === "" ? source : path}: ${message}`))
  const more = count > maxProblemsShown ? [`… and ${count - maxProblemsShown} more`] : []
  const summary = `nothing was imported; ${source} has ${count} problem${count === 1 ? "" : "s"}:`
  return [summary, ...lines, ...more].join("\n")
}

/** The message and the exit code of every error that a command can fail with. */
const errors: {
  readonly [Tag in Failure["_tag"]]: ErrorSpec<Extract<Failure, { readonly _tag: Tag }>>
} = {
  CommandError: { exitCode: failed, message: ({ message }) => message },
  InvalidContent: {
    exitCode: failed,
    message: ({ problems, count }) => describeProblems("the archive", problems, count)
  },
  InvalidFiles: {
    exitCode: failed,
    message: ({ problems, count }, { path }) => describeProblems(path ?? "the directory", problems, count)
  },
  KeyNotFound: { exitCode: failed, message: (_, { key }) => `there is no key ${key}: see keys list` },
  Unavailable: { exitCode: failed, message: () => "the database cannot be reached" },
  UsageError: { exitCode: wrongUsage, message: ({ message }) => message },
  UserNotFound: {
    exitCode: failed,
    message: (_, { email }) => `there is no user ${printable(email ?? "")}: see users list`
  },
  WorkspaceNotFound: {
    exitCode: failed,
    message: (_, { workspace }) => `there is no workspace ${workspace}: see workspaces list`
  }
}

/** Ends the program: the message goes to stderr, without a stack, and the process exits with the code. */
export class ExitError extends Data.TaggedError("ExitError")<{
  readonly message: string
  readonly exitCode: number
}> {}

/** Converts the error of a command with this input. */
export const toExitError = (error: Failure, input: CommandInput): ExitError => {
  const { exitCode, message } = errors[error._tag] as ErrorSpec<Failure>
  return new ExitError({ exitCode, message: message(error, input) })
}
