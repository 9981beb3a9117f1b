import * as Effect from "effect/Effect"
// Decoding with compiled schemas takes less time than with interpreted ones.
import "effect/schema/SchemaJITCompiler/enable"
import type { CommandError } from "../adapters/inbound/cli/CommandError.ts"
import type { RemotePrompts } from "../adapters/inbound/mcp/RemoteCatalog.ts"

/** The key and the URL of the service that `mcp` reads from. */
export interface RemoteOptions {
  readonly apiKey: string
  readonly baseUrl: string | undefined
}

/** The parts of the TypeScript client that this module uses. */
interface ClientModule {
  readonly PromptClient: new (options: {
    readonly apiKey: string
    readonly baseUrl: string | undefined
    readonly timeout: number
    readonly cache: { readonly ttl: number; readonly maxStale: number; readonly maxEntries: number }
  }) => { readonly prompts: RemotePrompts }
}

/**
 * The timeout of a call, in milliseconds: longer than a minute, so that a call that gets a 429 completes in the
 * next minute.
 */
const callTimeoutMs = 70_000
/** The client's cache: `ttl` equals the age that the lists announce, and no prompt is served stale. */
const cache = { ttl: 30_000, maxStale: 0, maxEntries: 10_000 }

/** Loads the client, which is beside this program in `dist` and in a checkout. */
const loadClient = (): Promise<ClientModule> => {
  const { url } = import.meta
  return import(new URL(url.endsWith(".ts") ? "../../client/src/index.ts" : "../client/index.js", url).href)
}

const writeLine = (line: string): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.write(`${line}\n`, (error) => (error ? reject(error) : resolve()))
  })

/**
 * Serves the Model Context Protocol on stdin and stdout until stdin ends. Fails if the key or the URL cannot be used;
 * a service that does not respond is an error of each call.
 */
export const serveRemotePrompts = ({ apiKey, baseUrl }: RemoteOptions): Effect.Effect<void, CommandError> =>
  Effect.gen(function* () {
    const [{ PromptClient }, { makeRemoteCatalog }, { serveStdio }, { CommandError }] = yield* Effect.promise(
      () =>
        Promise.all([
          loadClient(),
          import("../adapters/inbound/mcp/RemoteCatalog.ts"),
          import("../adapters/inbound/mcp/StdioServer.ts"),
          import("../adapters/inbound/cli/CommandError.ts")
        ])
    )
    const { prompts } = yield* Effect.try({
      try: () => new PromptClient({ apiKey, baseUrl, timeout: callTimeoutMs, cache }),
      catch: (error) => new CommandError({ message: (error as Error).message })
    })
    // A client that no longer reads is gone; its end of stdin follows.
    process.stdout.on("error", () => {})
    yield* serveStdio({ input: process.stdin, writeLine }, makeRemoteCatalog(prompts))
  })
