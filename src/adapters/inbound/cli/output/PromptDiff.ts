import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff"
import * as Effect from "effect/Effect"
import { CommandError } from "./CommandError.ts"

/** One side of a comparison: a text and its name. */
interface Side {
  readonly name: string
  readonly content: string
}

/** How long a comparison may take, in milliseconds: its time grows with the number of differences. */
const timeoutMs = 10_000

/** Compares two texts by line, in the unified format. Returns the empty text if they are equal. */
export const diffLines = (before: Side, after: Side): Effect.Effect<string, CommandError> =>
  Effect.suspend(() => {
    if (before.content === after.content) return Effect.succeed("")
    const patch = createTwoFilesPatch(
      before.name,
      after.name,
      before.content,
      after.content,
      undefined,
      undefined,
      { context: 3, headerOptions: FILE_HEADERS_ONLY, timeout: timeoutMs }
    )
    return patch === undefined
      ? Effect.fail(
          new CommandError({
            message: `${before.name} and ${after.name} differ in too many lines to compare`
          })
        )
      : Effect.succeed(patch)
  })
