import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Caller } from "../../../application/Admission.ts"
import { Prompts } from "../../../application/Prompts.ts"
import { PromptsGroup } from "./contract/Api.ts"
import { readPageEnvelope, toDataEnvelope } from "./contract/Envelope.ts"
import type { ApiError } from "./contract/Errors.ts"
import { makeParameterReader } from "./contract/Parameters.ts"
import { parseQuery } from "./request/QueryString.ts"
import type { MatchedRoute } from "./request/Route.ts"
import { encodeBody, type TaggedBody } from "./response/Representation.ts"

/** The contract of one endpoint. */
type EndpointSpec = (typeof PromptsGroup.endpoints)[keyof typeof PromptsGroup.endpoints]

/** Handles one endpoint: (caller, path parameters, query) → response envelope. */
type Handler<Spec extends EndpointSpec> = (
  caller: Caller,
  params: Spec["~Params"]["Type"],
  query: Spec["~Query"]["Type"]
) => Effect.Effect<Spec["~Success"]["Type"], ApiError>

type Handlers = { readonly [Spec in EndpointSpec as Spec["identifier"]]: Handler<Spec> }

/** Makes the handlers of the five endpoints of specification 4. */
const makeHandlers = (prompts: Prompts["Service"]): Handlers => ({
  list: (caller, _, query) => readPageEnvelope(query, (page) => prompts.list(caller, query, page)),
  get: (caller, { id }) => Effect.map(prompts.get(caller, id), toDataEnvelope),
  getResolved: (caller, { id }) => Effect.map(prompts.getResolved(caller, id), toDataEnvelope),
  listVersions: (caller, { id }, query) =>
    readPageEnvelope(query, (page) => prompts.listVersions(caller, id, page)),
  getVersion: (caller, { id, version }) => Effect.map(prompts.getVersion(caller, id, version), toDataEnvelope)
})

/** Responds to an admitted caller with the body that the contract describes. */
export type Endpoint = (caller: Caller, matched: MatchedRoute) => Effect.Effect<TaggedBody, ApiError>

/** The endpoints by the patterns of their paths. */
export type EndpointsByRoute = ReadonlyMap<string, Endpoint>

type Params = EndpointSpec["~Params"]["Type"]
type Query = EndpointSpec["~Query"]["Type"]

/** Combines the steps of one endpoint: parse the query, run the handler, encode the envelope. */
const makeEndpoint = (spec: EndpointSpec, handle: Handler<EndpointSpec>): Endpoint => {
  const readParameters = spec.query && makeParameterReader(spec.query as Schema.Decoder<Query>)
  // An endpoint without query parameters ignores any that are sent.
  const readQuery = (query: string) =>
    readParameters === undefined ? Result.succeed({}) : readParameters(parseQuery(query))
  const encodeEnvelope = Schema.encodeSync([...spec.success][0] as Schema.Encoder<unknown>)
  return (caller, { params, query }) =>
    Effect.fromResult(readQuery(query)).pipe(
      Effect.flatMap((query) => handle(caller, params as Params, query)),
      Effect.map((envelope) => encodeBody(encodeEnvelope(envelope)))
    )
}

/** Makes the endpoints. */
export const makeEndpoints: Effect.Effect<EndpointsByRoute, never, Prompts> = Effect.map(
  Prompts,
  (prompts) => {
    const handlers = makeHandlers(prompts)
    return new Map(
      Object.values(PromptsGroup.endpoints).map((spec) => [
        spec.path,
        makeEndpoint(spec, handlers[spec.identifier] as Handler<EndpointSpec>)
      ])
    )
  }
)
