import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { MountedEndpoint } from "../adapters/inbound/http/contract/MountedEndpoint.ts"
import type { ServiceConfig } from "./Config.ts"

/** The path of the endpoint for the Model Context Protocol. */
const path = "/mcp"

/** The names of the prompts of a database. */
const namedPromptsLayer = Layer.unwrap(
  Effect.map(
    Effect.promise(() =>
      Promise.all([
        import("../application/NamedPrompts.ts"),
        import("../adapters/outbound/postgres/PostgresPromptTitles.ts")
      ])
    ),
    ([{ NamedPrompts }, PostgresPromptTitles]) =>
      NamedPrompts.layer.pipe(Layer.provide(PostgresPromptTitles.layer))
  )
)

/** The endpoint for the Model Context Protocol, if the configuration asks for it. Its modules load only then. */
export const mcpEndpointLayer = ({ mcp, publicUrl }: Pick<ServiceConfig, "mcp" | "publicUrl">) =>
  mcp
    ? Layer.effect(
        MountedEndpoint,
        Effect.gen(function* () {
          const [{ makeHttpEndpoint }, { maxMessageBytes }] = yield* Effect.promise(() =>
            Promise.all([
              import("../adapters/inbound/mcp/HttpEndpoint.ts"),
              import("../adapters/inbound/mcp/JsonRpc.ts")
            ])
          )
          const origin = publicUrl === undefined ? undefined : new URL(publicUrl).origin
          return { path, maxBodyBytes: maxMessageBytes, respond: yield* makeHttpEndpoint(origin) }
        })
      ).pipe(Layer.provide(namedPromptsLayer))
    : Layer.empty
