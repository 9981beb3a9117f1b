import * as Command from "effect/cli/Command"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { CommandError } from "./CommandError.ts"
import { mcpVariables, Variables } from "./Environment.ts"
import { handle } from "./Handler.ts"
import { Operations } from "./Operations.ts"

const readVariable = (name: string): Effect.Effect<string | undefined> =>
  Config.option(Config.String(name)).pipe(
    Effect.orDie,
    Effect.map((value) => Option.getOrUndefined(Option.filter(value, (text) => text !== "")))
  )

/** `mcp`. */
export const mcpCommand = Command.make(
  "mcp",
  {},
  handle(
    Effect.fnUntraced(function* () {
      const apiKey = yield* readVariable("PROMPT_RETRIEVAL_KEY")
      if (apiKey === undefined)
        return yield* new CommandError({
          message: "PROMPT_RETRIEVAL_KEY is not set; it holds the API key to read with"
        })
      const { serveRemotePrompts } = yield* Operations
      return yield* serveRemotePrompts({ apiKey, baseUrl: yield* readVariable("PROMPT_RETRIEVAL_URL") })
    })
  )
).pipe(
  Command.withDescription(
    "Serve the prompts of a running service to a local tool, over the Model Context Protocol on stdin and stdout"
  ),
  Command.annotate(Variables, mcpVariables),
  Command.withExamples([
    { command: "PROMPT_RETRIEVAL_KEY=key_live_… prompt-retrieval mcp" },
    {
      command:
        "PROMPT_RETRIEVAL_URL=https://prompts.example.com PROMPT_RETRIEVAL_KEY=key_live_… prompt-retrieval mcp"
    }
  ])
)
