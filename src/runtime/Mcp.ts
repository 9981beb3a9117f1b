import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { MountedEndpoint } from "../adapters/inbound/contract/MountedEndpoint.ts"
import { makeHttpEndpoint } from "../adapters/inbound/mcp/HttpEndpoint.ts"
import * as PostgresPromptTitles from "../adapters/outbound/postgres/prompts/PostgresPromptTitles.ts"
import type { ServiceConfig } from "./config/Config.ts"

const path = "/mcp"

const endpointLayer = (publicUrl: string | undefined) => {
  const origin = publicUrl === undefined ? undefined : new URL(publicUrl).origin
  return Layer.effect(
    MountedEndpoint,
    Effect.map(makeHttpEndpoint(origin), (respond) => ({ path, respond }))
  ).pipe(Layer.provide(PostgresPromptTitles.layer))
}

/** The endpoint for the Model Context Protocol, if the configuration enables it. */
export const mcpEndpointLayer = ({ mcp, publicUrl }: Pick<ServiceConfig, "mcp" | "publicUrl">) =>
  mcp ? endpointLayer(publicUrl) : Layer.succeed(MountedEndpoint, undefined)
