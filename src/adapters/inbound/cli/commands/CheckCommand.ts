import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { ExitCode } from "../output/CommandError.ts"
import { json, optional } from "../input/Flags.ts"
import { handle } from "../CommandHandler.ts"
import type { DirectoryCheckOptions } from "../files/FilesCheck.ts"

/** The exit code if a change can break applications. */
const breakingExitCode = 2

/** The command `check`, which needs no database. */
export const checkCommand = Command.make(
  "check",
  {
    directory: Argument.String("directory").pipe(Argument.withDescription("Directory of prompts")),
    against: optional(Flag.String("against")).pipe(
      Flag.withMetavar("<directory>"),
      Flag.withDescription(
        "An earlier state of the directory, such as a checkout of the main branch: also print the changes that can break applications, and exit with 2 if there are any"
      )
    ),
    json
  },
  Effect.fnUntraced(function* (input) {
    const run = handle(
      Effect.fnUntraced(function* (options: DirectoryCheckOptions) {
        const { runFilesCheck } = yield* Effect.promise(() => import("../files/FilesCheck.ts"))
        return yield* runFilesCheck(options)
      })
    )
    if (yield* run(input)) return yield* new ExitCode({ exitCode: breakingExitCode })
  })
).pipe(
  Command.withDescription("Check a directory of prompts without a database"),
  Command.withExamples([
    { command: "prompt-retrieval check prompts-of-acme" },
    { command: "prompt-retrieval check prompts-of-acme --against ../main/prompts-of-acme" }
  ])
)
