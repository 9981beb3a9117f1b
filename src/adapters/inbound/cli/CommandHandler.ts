import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { CommandError } from "./output/CommandError.ts"
import { type CommandInput, type ExitError, type Failure, toExitError } from "./output/ExitError.ts"
import { print } from "./output/Output.ts"

/** Makes the handler of a command that prints its own output. */
export const handle =
  <Input extends CommandInput, A, E extends Failure, R>(run: (input: Input) => Effect.Effect<A, E, R>) =>
  (input: Input): Effect.Effect<A, ExitError, R> =>
    Effect.mapError(run(input), (error) => toExitError(error, input))

interface ResultTexts<A> {
  readonly describeLoss?: (result: A) => string
  readonly describeHint?: (result: A) => string
}

/**
 * Makes the handler of a command that prints its result: as JSON with `--json`, otherwise as the text of `render`.
 * Without `--json`, the text of `describeHint` goes to stderr. If the result cannot be printed, the error ends with the
 * text of `describeLoss`, which says what is lost and how to recover.
 */
export const handleAndPrint = <
  Input extends CommandInput & { readonly json: boolean },
  A,
  E extends Failure,
  R
>(
  run: (input: Input) => Effect.Effect<A, E, R>,
  render: (result: A) => string,
  { describeLoss, describeHint }: ResultTexts<A> = {}
) =>
  handle((input: Input) =>
    Effect.flatMap(run(input), (result) =>
      print(input.json, result, render(result)).pipe(
        Effect.mapError((error) =>
          describeLoss === undefined
            ? error
            : new CommandError({ message: `${error.message}; ${describeLoss(result)}` })
        ),
        Effect.andThen(
          describeHint === undefined || input.json ? Effect.void : Console.error(describeHint(result))
        )
      )
    )
  )
