import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { json } from "./input/Flags.ts"
import { AsJson, CommandError } from "./output/CommandError.ts"
import { type CommandInput, type Failure, toExitError } from "./output/ErrorMessages.ts"
import { print } from "./output/Output.ts"

/** Adds a description and examples to a command. The examples do not contain the name of the program. */
export const withHelp =
  (description: string, ...examples: ReadonlyArray<string>) =>
  <Name extends string, Input, ContextInput, E, R>(
    command: Command.Command<Name, Input, ContextInput, E, R>
  ): Command.Command<Name, Input, ContextInput, E, R> =>
    command.pipe(
      Command.withDescription(description),
      Command.withExamples(examples.map((example) => ({ command: `prompt-retrieval ${example}` })))
    )

/** Makes a command that has only subcommands. */
export const makeGroup = <
  const Name extends string,
  const Subcommands extends ReadonlyArray<Command.Command.Any>
>(
  name: Name,
  description: string,
  subcommands: Subcommands
) => Command.make(name).pipe(Command.withDescription(description), Command.withSubcommands(subcommands))

/** Makes the handler of a command that prints its own output. */
export const handle =
  <Input, A, E extends Failure, R>(run: (input: Input) => Effect.Effect<A, E, R>) =>
  (input: Input) => {
    const parts = input as CommandInput
    return run(input).pipe(
      Effect.mapError((error) => toExitError(error, parts)),
      Effect.provideService(AsJson, parts.json ?? false)
    )
  }

type JsonParams<Params> = Params & { readonly json: typeof json }
type Input<Params extends Command.Command.Config> = Command.Command.Config.Infer<JsonParams<Params>>

/**
 * Makes a command that prints its result: as JSON with `--json`, otherwise as the text that `render` returns. Without
 * `--json`, the command also prints the text of `describeHint` to stderr. If the command cannot print the result, the
 * error message ends with the text of `describeLoss`, which names the lost data and the remedy. The command closes the
 * database before it prints the result.
 */
export const makeCommand = <
  const Name extends string,
  const Params extends Command.Command.Config,
  A,
  E extends Failure,
  R
>(
  name: Name,
  params: Params,
  run: (input: Input<Params>) => Effect.Effect<A, E, R>,
  render: (result: A) => string,
  texts: {
    readonly describeLoss?: (result: A) => string
    readonly describeHint?: (result: A) => string
  } = {}
) =>
  Command.make(
    name,
    { ...params, json } as JsonParams<Params>,
    handle(
      Effect.fnUntraced(function* (input: Input<Params>) {
        const { describeLoss, describeHint } = texts
        const result = yield* Effect.scoped(run(input))
        yield* Effect.mapError(print(result, render(result)), (error) =>
          describeLoss === undefined
            ? error
            : new CommandError({ message: `${error.message}; ${describeLoss(result)}` })
        )
        if (describeHint !== undefined && !(yield* AsJson)) yield* Console.error(describeHint(result))
      })
    )
  )
