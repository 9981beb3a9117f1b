import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { MountedEndpoint } from "../adapters/inbound/contract/MountedEndpoint.ts"
import type { ServiceConfig } from "./config/Config.ts"

/** The path of the endpoint for the Model Context Protocol. */
const path = "/mcp"

const makeEndpointLayer = Effect.fnUntraced(function* (publicUrl: string | undefined) {
  const [{ makeHttpEndpoint }, { maxMessageBytes }, { NamedPrompts }, PostgresPromptTitles] =
    yield* Effect.promise(() =>
      Promise.all([
        import("../adapters/inbound/mcp/HttpEndpoint.ts"),
        import("../adapters/inbound/mcp/JsonRpc.ts"),
        import("../application/reading/NamedPrompts.ts"),
        import("../adapters/outbound/postgres/prompts/PostgresPromptTitles.ts")
      ])
    )
  const origin = publicUrl === undefined ? undefined : new URL(publicUrl).origin
  return Layer.effect(
    MountedEndpoint,
    Effect.map(makeHttpEndpoint(origin), (respond) => ({ path, maxBodyBytes: maxMessageBytes, respond }))
  ).pipe(Layer.provide(NamedPrompts.layer), Layer.provide(PostgresPromptTitles.layer))
})

/** The endpoint for the Model Context Protocol, if the configuration asks for it. Its modules load only then. */
export const mcpEndpointLayer = ({ mcp, publicUrl }: Pick<ServiceConfig, "mcp" | "publicUrl">) =>
  mcp ? Layer.unwrap(makeEndpointLayer(publicUrl)) : Layer.succeed(MountedEndpoint, undefined)
