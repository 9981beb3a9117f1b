import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { vi } from "vitest"
import { CommandError } from "../../src/adapters/inbound/cli/CommandError.ts"
import { runCommandLine } from "../../src/adapters/inbound/cli/Commands.ts"
import type { Operations } from "../../src/adapters/inbound/cli/Operations.ts"
import { OutputWriter } from "../../src/adapters/inbound/cli/Output.ts"
import { Administration } from "../../src/application/Administration.ts"
import { Prompts } from "../../src/application/Prompts.ts"
import type { CommandResult } from "./service.ts"

const noDatabase = new CommandError({ message: "no database" })

/** Operations that fail. */
const operations: Operations["Service"] = {
  serve: () => Effect.fail(noDatabase),
  migrate: Effect.fail(noDatabase),
  schemaStatus: Effect.fail(noDatabase),
  useCases: () =>
    Layer.merge(
      Layer.effect(Administration, Effect.fail(noDatabase)),
      Layer.effect(Prompts, Effect.fail(noDatabase))
    )
}

/**
 * Runs a command line without a database in this process, which takes much less time than a process. A command that
 * needs the database fails with exit code 1 and the message "no database".
 */
export const runInProcess = async (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
): Promise<CommandResult> => {
  let stdout = ""
  let stderr = ""
  const log = vi.spyOn(console, "error").mockImplementation((text) => {
    stderr += `${text}\n`
  })
  try {
    const code = await Effect.runPromise(
      runCommandLine(operations, args, "0.0.0").pipe(
        Effect.provide(NodeServices.layer),
        Effect.provideService(OutputWriter, (text) =>
          Effect.sync(() => {
            stdout += text
          })
        ),
        Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
      )
    )
    return { code, stdout, stderr }
  } finally {
    log.mockRestore()
  }
}
