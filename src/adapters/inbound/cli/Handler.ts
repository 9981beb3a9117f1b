import * as Effect from "effect/Effect"
import { CommandError } from "./CommandError.ts"
import { type CommandInput, type ExitError, type Failure, toExitError } from "./Errors.ts"
import { print } from "./Output.ts"

/** Makes the handler of a command that prints its own output. */
export const handle =
  <Input extends CommandInput, E extends Failure, R>(run: (input: Input) => Effect.Effect<void, E, R>) =>
  (input: Input): Effect.Effect<void, ExitError, R> =>
    Effect.mapError(run(input), (error) => toExitError(error, input))

/**
 * Makes the handler of a command that prints its result: as JSON with `--json`, otherwise as the text of `render`.
 * If the result cannot be printed, the error ends with `describeLoss`, which says what is lost and what to do.
 */
export const handleAndPrint = <
  Input extends CommandInput & { readonly json: boolean },
  A,
  E extends Failure,
  R
>(
  run: (input: Input) => Effect.Effect<A, E, R>,
  render: (result: A) => string,
  describeLoss?: (result: A) => string
) =>
  handle((input: Input) =>
    Effect.flatMap(run(input), (result) =>
      Effect.mapError(print(input.json, result, render(result)), (error) =>
        describeLoss === undefined
          ? error
          : new CommandError({ message: `${error.message}; ${describeLoss(result)}` })
      )
    )
  )
