import { createInterface } from "node:readline"
import * as Effect from "effect/Effect"
import { CommandError } from "../output/CommandError.ts"

/** Returns true if a person can answer a question: stdin and stderr are terminals. */
export const isInteractive = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/** Returns the line that the person types, or an empty text if the person ends the input. */
const ask = (question: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const terminal = createInterface({ input: process.stdin, output: process.stderr })
    terminal.once("close", () => resume(Effect.succeed("")))
    terminal.question(question, (line) => {
      resume(Effect.succeed(line))
      terminal.close()
    })
    return Effect.sync(() => terminal.close())
  })

export const confirmByTyping = (question: string, expected: string): Effect.Effect<void, CommandError> =>
  Effect.flatMap(ask(question), (line) =>
    line.trim() === expected.trim()
      ? Effect.void
      : Effect.fail(new CommandError({ message: "not confirmed; nothing was deleted" }))
  )
