import * as Argument from "effect/cli/Argument"
import type * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Completions from "effect/cli/Completions"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { type ExitError, toExitError } from "../output/Errors.ts"
import type { ExitCode } from "../output/CommandError.ts"
import { writeOutput } from "../output/Output.ts"

/** The program itself, for the commands that describe it. */
export class Program extends Context.Service<
  Program,
  {
    /** The root of the command tree. */
    readonly root: Command.Command.Any
    /** Runs another command line of this program. */
    readonly run: (
      args: ReadonlyArray<string>
    ) => Effect.Effect<void, ExitError | ExitCode | CliError.CliError, Command.Environment>
  }
>()("prompt-retrieval/cli/Program") {}

export const helpCommand = Command.make(
  "help",
  {
    command: Argument.String("command").pipe(
      Argument.withDescription("Words of the command, such as keys issue"),
      Argument.variadic()
    )
  },
  ({ command }) => Effect.flatMap(Program, ({ run }) => run([...command, "--help"]))
).pipe(
  Command.withDescription("Show the help of a command, as --help does"),
  Command.withExamples([{ command: "prompt-retrieval help keys issue" }])
)

export const versionCommand = Command.make("version", {}, () =>
  Effect.flatMap(Program, ({ run }) => run(["--version"]))
).pipe(Command.withDescription("Show the version, as --version does"))

export const completionCommand = Command.make(
  "completion",
  {
    shell: Argument.Literals("shell", ["bash", "zsh", "fish"]).pipe(
      Argument.withDescription("Shell that runs the script: bash, zsh or fish")
    )
  },
  Effect.fnUntraced(function* ({ shell }) {
    const { root } = yield* Program
    const script = Completions.generate(root.name, shell, Completions.fromCommand(root))
    // The instructions in the generated script use a flag that this program does not have.
    const text = script.replaceAll(`${root.name} --completions`, `${root.name} completion`)
    yield* Effect.mapError(writeOutput(`${text}\n`), (error) => toExitError(error, {}))
  })
).pipe(
  Command.withDescription("Print a script that completes commands and flags in a shell"),
  Command.withExamples([
    { command: "prompt-retrieval completion bash >> ~/.bashrc" },
    { command: 'prompt-retrieval completion zsh > "$fpath[1]/_prompt-retrieval"' },
    { command: "prompt-retrieval completion fish > ~/.config/fish/completions/prompt-retrieval.fish" }
  ])
)
