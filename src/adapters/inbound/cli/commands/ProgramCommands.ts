import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Completions from "effect/cli/Completions"
import * as Effect from "effect/Effect"
import { toExitError } from "../output/ExitError.ts"
import { writeOutput } from "../output/Output.ts"

/** The command `help`, which `runCommandLine` replaces with the flag `--help`. */
export const helpCommand = Command.make(
  "help",
  {
    command: Argument.String("command").pipe(
      Argument.withDescription("Words of the command, such as keys issue"),
      Argument.variadic()
    )
  },
  () => Effect.void
).pipe(
  Command.withDescription("Show the help of a command, as --help does"),
  Command.withExamples([{ command: "prompt-retrieval help keys issue" }])
)

/** The command `version`, which `runCommandLine` replaces with the flag `--version`. */
export const versionCommand = Command.make("version", {}, () => Effect.void).pipe(
  Command.withDescription("Show the version, as --version does")
)

/** Makes the command `completion`. `getRoot` returns the root command, which contains this command. */
export const makeCompletionCommand = (getRoot: () => Command.Command.Any) =>
  Command.make(
    "completion",
    {
      shell: Argument.Literals("shell", ["bash", "zsh", "fish"]).pipe(
        Argument.withDescription("Shell that runs the script: bash, zsh or fish")
      )
    },
    ({ shell }) => {
      const root = getRoot()
      const script = Completions.generate(root.name, shell, Completions.fromCommand(root))
      // The instructions in the generated script use a flag that this program does not have.
      const text = script.replaceAll(`${root.name} --completions`, `${root.name} completion`)
      return Effect.mapError(writeOutput(`${text}\n`), (error) => toExitError(error, {}))
    }
  ).pipe(
    Command.withDescription("Print a script that completes commands and flags in a shell"),
    Command.withExamples([
      { command: "prompt-retrieval completion bash >> ~/.bashrc" },
      { command: 'prompt-retrieval completion zsh > "$fpath[1]/_prompt-retrieval"' },
      { command: "prompt-retrieval completion fish > ~/.config/fish/completions/prompt-retrieval.fish" }
    ])
  )
