import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Caller } from "../../application/Admission.ts"
import { largeWork } from "../../application/LargeWork.ts"
import { Prompts } from "../../application/Prompts.ts"
import { makePage, type Page, pageMeta, type Slice } from "../../domain/Page.ts"
import { Endpoints } from "./Api.ts"
import type { ApiError } from "./Errors.ts"
import { encodeInSlices, holdsLargeText } from "./LargeJson.ts"
import { parameterReader, parametersOf } from "./Query.ts"
import type { Target } from "./Target.ts"

/** The envelope of one resource (SPEC.md section 2.1). */
export const single = <A>(data: A) => ({ data })

/** Reads the page that was asked for, into its envelope. */
export const paged = <A, E>(
  asked: Parameters<typeof makePage>[0],
  read: (page: Page) => Effect.Effect<Slice<A>, E>
) =>
  Effect.flatMap(Effect.fromResult(makePage(asked)), (page) =>
    Effect.map(read(page), ({ items, total }) => ({ data: items, meta: pageMeta(page, total) }))
  )

type Contract = (typeof Endpoints.endpoints)[keyof typeof Endpoints.endpoints]

/** What the contract says of an endpoint, as a function from who asks for what to the envelope. */
type Handler<Endpoint extends Contract> = (
  caller: Caller,
  params: Endpoint["~Params"]["Type"],
  query: Endpoint["~Query"]["Type"]
) => Effect.Effect<Endpoint["~Success"]["Type"], ApiError>

type Handlers = { readonly [Endpoint in Contract as Endpoint["identifier"]]: Handler<Endpoint> }

/** The five endpoints of SPEC.md section 4: query to page and filter, use case, envelope. */
const handlersOf = (prompts: Prompts["Service"]): Handlers => ({
  list: (caller, _, query) => paged(query, (page) => prompts.list(caller, query, page)),
  get: (caller, { id }) => Effect.map(prompts.get(caller, id), single),
  getResolved: (caller, { id }) => Effect.map(prompts.getResolved(caller, id), single),
  listVersions: (caller, { id }, query) => paged(query, (page) => prompts.listVersions(caller, id, page)),
  getVersion: (caller, { id, version }) => Effect.map(prompts.getVersion(caller, id, version), single)
})

/** Answers an admitted caller with the body that the contract describes. */
type Endpoint = (caller: Caller, target: Target) => Effect.Effect<Uint8Array, ApiError>

/** Where the contract names no parameter, none is looked at. */
const noQuery = Result.succeed({} as never)

/** Encodes a body into memory of its own. `Buffer.from` would put small ones into a pool, which a cached one pins. */
export const toBody = (text: string): Uint8Array => {
  const body = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  body.write(text)
  return body
}

const endpointOf = (contract: Contract, handler: Handler<Contract>): Endpoint => {
  const read = contract.query && parameterReader(contract.query as Schema.Decoder<never>)
  const readQuery = (query: string) => (read === undefined ? noQuery : read(parametersOf(query)))
  const encode = Schema.encodeSync([...contract.success][0] as Schema.Encoder<unknown>)
  const encodeBody = (envelope: unknown): Effect.Effect<Uint8Array> => {
    const encoded = encode(envelope)
    return holdsLargeText(encoded)
      ? largeWork.encode(encodeInSlices(encoded))
      : Effect.succeed(toBody(JSON.stringify(encoded)))
  }
  return (caller, { params, query }) =>
    Effect.fromResult(readQuery(query)).pipe(
      Effect.flatMap((query) => handler(caller, params as never, query)),
      Effect.flatMap(encodeBody)
    )
}

/** The endpoints by the patterns of their paths. */
export const makeEndpoints: Effect.Effect<ReadonlyMap<string, Endpoint>, never, Prompts> = Effect.map(
  Prompts,
  (prompts) => {
    const handlers = handlersOf(prompts)
    return new Map(
      Object.values(Endpoints.endpoints).map((contract) => [
        contract.path,
        endpointOf(contract, handlers[contract.identifier] as Handler<Contract>)
      ])
    )
  }
)
