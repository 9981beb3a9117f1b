import * as Effect from "effect/Effect"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type { Caller } from "../../../application/Admission.ts"
import { countUnits, Prompts, ReadGate, type ResolvedItem } from "../../../application/Prompts.ts"
import { InvalidParameter, type PageMeta } from "../../../domain/Page.ts"
import { operationalPaths, PromptsGroup } from "../contract/Api.ts"
import { readPageEnvelope } from "../contract/Envelope.ts"
import type { ApiError } from "../contract/Errors.ts"
import { makeParameterDecoder, maxPrompts } from "../contract/Parameters.ts"
import { type BodyWithEtag, encodeWithEtag } from "./HttpMessage.ts"

export interface MatchedRoute {
  /** The pattern of the route, such as `/api/v1/prompts/:id`. */
  readonly route: string
  /** The undecoded values of the pattern's parameters, by name. */
  readonly params: Readonly<Record<string, string>>
  /** The undecoded part of the target after the first `?`. */
  readonly query: string
}

/** Matches the scheme and the authority of a request target in absolute form. */
const absoluteFormPattern = /^https?:\/\/[^/?#]*/i

/**
 * The routes with regular expressions that match their paths. A parameter matches a segment that is not empty and has
 * no percent-encoding, no `;name=value` and no fragment.
 */
const routes = [...Object.values(PromptsGroup.endpoints).map(({ path }) => path), ...operationalPaths].map(
  (route) => ({
    route,
    pattern: new RegExp(`^${route.replaceAll(".", "\\.").replaceAll(/:(\w+)/g, "(?<$1>[^/%;#]+)")}$`)
  })
)

/** Splits a raw request target into its path and its query. Omits the scheme and the authority. */
export const splitTarget = (rawTarget: string): { readonly path: string; readonly query: string } => {
  const target = rawTarget.startsWith("/") ? rawTarget : rawTarget.replace(absoluteFormPattern, "")
  const queryStart = target.indexOf("?")
  return queryStart < 0
    ? { path: target, query: "" }
    : { path: target.slice(0, queryStart), query: target.slice(queryStart + 1) }
}

/**
 * Matches a raw request target against the routes of the API and the operational paths. Returns `undefined` if the path
 * is unknown. Ignores the scheme and the authority of a target in absolute form. The path must start with the base
 * path. Compares the path byte by byte, without decoding: an additional slash, a different letter case, or any of `%`,
 * `;` and `#` makes the path unknown.
 */
export const matchRoute = (rawTarget: string, basePath = ""): MatchedRoute | undefined => {
  const { path, query } = splitTarget(rawTarget)
  if (!path.startsWith(basePath)) return undefined
  for (const { route, pattern } of routes) {
    const found = pattern.exec(path.slice(basePath.length))
    if (found !== null) return { route, params: { ...found.groups }, query }
  }
  return undefined
}

/** Maps the name of each parameter to its decoded value, which is an array for a repeated parameter. */
type QueryParameters = Readonly<Record<string, string | ReadonlyArray<string>>>

/** Parses a query without its `?`, by the rules of the WHATWG URL standard for forms. */
const parseQuery = (query: string): QueryParameters => {
  const parameters: Record<string, string | Array<string>> = Object.create(null)
  // URLSearchParams drops a leading `?`. The added `?` protects a `?` that begins the first name.
  for (const [name, value] of new URLSearchParams(`?${query}`)) {
    const previous = parameters[name]
    if (previous === undefined) parameters[name] = value
    else if (typeof previous === "string") parameters[name] = [previous, value]
    else previous.push(value)
  }
  return parameters
}

type EndpointSpecs = typeof PromptsGroup.endpoints
type EndpointSpec = EndpointSpecs[keyof EndpointSpecs]

/** The body of an endpoint's 200 response, and the value of its `Prompt-Version` header, if any. A 304 has no body. */
type HandlerResult<Spec extends EndpointSpec> = Exclude<Spec["~Success"]["Type"]["body"], void> & {
  readonly promptVersion?: number
}

/** Handles one endpoint: (caller, path parameters, query) → response envelope. */
type Handler<Spec extends EndpointSpec> = (
  caller: Caller,
  params: Spec["~Params"]["Type"],
  query: Spec["~Query"]["Type"]
) => Effect.Effect<HandlerResult<Spec>, ApiError>

type Handlers = { readonly [Name in keyof EndpointSpecs]: Handler<EndpointSpecs[Name]> }

/** Reads the prompts with the given ids and names, as one page. */
const readNamedPrompts = (
  prompts: Prompts["Service"],
  caller: Caller,
  names: ReadonlyArray<string>,
  otherParameters: object
) =>
  Object.keys(otherParameters).length > 0
    ? Effect.fail(InvalidParameter("prompt must not be combined with other parameters"))
    : Effect.map(prompts.getManyResolved(caller, names), (data) => ({
        data,
        meta: { page: 1, per_page: maxPrompts, total: data.length }
      }))

interface ResolvedPage {
  readonly data: ReadonlyArray<ResolvedItem>
  readonly meta: PageMeta
}

/** Returns the envelope of resolved prompts. If `names` is given, adds the names and versions of the prompts. */
const toResolvedEnvelope = ({ data, meta }: ResolvedPage, names: string | undefined) => {
  const prompts = data.map(({ name, current_version }) => ({ name, version: current_version }))
  return { data: data.map(({ prompt }) => prompt), meta: names === undefined ? meta : { ...meta, prompts } }
}

const makeHandlers = (prompts: Prompts["Service"]): Handlers => ({
  list: (caller, _, query) => readPageEnvelope(query, (page) => prompts.list(caller, query, page)),
  get: (caller, { id }) =>
    Effect.map(prompts.get(caller, id), (data) => ({ data, promptVersion: data.current_version })),
  getResolved: (caller, { id }) =>
    Effect.map(prompts.getResolvedVersion(caller, id), ({ prompt, current_version }) => ({
      data: prompt,
      promptVersion: current_version
    })),
  listResolved: (caller, _, { prompt, names, ...query }) =>
    Effect.map(
      prompt === undefined
        ? readPageEnvelope(query, (page) => prompts.listResolved(caller, query, page))
        : readNamedPrompts(prompts, caller, [prompt].flat(), query),
      (page) => toResolvedEnvelope(page, names)
    ),
  listVersions: (caller, { id }, query) =>
    readPageEnvelope(query, (page) => prompts.listVersions(caller, id, page)),
  getVersion: (caller, { id, version }) =>
    Effect.map(prompts.getVersion(caller, id, version), (data) => ({ data }))
})

/** Returns the body of the response to an admitted caller. */
export type Endpoint = (caller: Caller, matched: MatchedRoute) => Effect.Effect<BodyWithEtag, ApiError>

/** The schemas of an endpoint. `HttpApiEndpoint` declares each of these schemas only as `Schema.Top`. */
interface EndpointSchemas<Spec extends EndpointSpec> {
  readonly params: Schema.Decoder<Spec["~Params"]["Type"]>
  readonly query: Schema.Decoder<Spec["~Query"]["Type"]>
  readonly body: Schema.Encoder<unknown>
}

const makeEndpoint = <Spec extends EndpointSpec>(
  spec: Spec,
  handle: Handler<Spec>,
  gate: ReadGate["Service"]
): Endpoint => {
  const schemas = {
    params: spec.params ?? Schema.Struct({}),
    query: spec.query ?? Schema.Struct({}),
    body: [...spec.success].find(HttpApiSchema.isWithHeaders)?.schema
  } as EndpointSchemas<Spec>
  const decodeParams = Schema.decodeUnknownSync(schemas.params)
  const decodeQuery = makeParameterDecoder(schemas.query)
  // An endpoint without query parameters ignores the query.
  const ignoredQuery = spec.query === undefined ? decodeQuery({}) : undefined
  const encodeBody = Schema.encodeUnknownSync(schemas.body)
  return (caller, { params, query }) =>
    Effect.fromResult(ignoredQuery ?? decodeQuery(parseQuery(query))).pipe(
      Effect.flatMap((query) => handle(caller, decodeParams(params), query)),
      Effect.flatMap(({ promptVersion, ...envelope }) =>
        gate.runStep(countUnits(envelope), () => ({
          ...encodeWithEtag(JSON.stringify(encodeBody(envelope))),
          promptVersion
        }))
      )
    )
}

export const makeEndpoints = Effect.gen(function* () {
  const handlers = makeHandlers(yield* Prompts)
  const gate = yield* ReadGate
  const { endpoints } = PromptsGroup
  const make = <Name extends keyof EndpointSpecs>(name: Name): [string, Endpoint] => [
    endpoints[name].path,
    makeEndpoint(endpoints[name], handlers[name], gate)
  ]
  return new Map(Struct.keys(endpoints).map(make))
})
