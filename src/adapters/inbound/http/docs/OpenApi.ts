import * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import { programVersion } from "../../../../application/ProgramVersion.ts"
import { Api } from "../../contract/Api.ts"
import { parameterDetails } from "../../contract/Parameters.ts"

const documentedApi = Api.annotateMerge(
  OpenApi.annotations({
    title: "Prompt Retrieval",
    version: programVersion,
    description: `Prompts, their resolved content and their versions, for applications that read them at run time.

A key reads only its own workspace. Call the API from a server, because a browser would expose the key. Retry a request only
after 408, 429, 500 and 503. Later versions may add fields, headers and error codes: ignore those that you do not know. The
OpenAPI document of the API is at [/openapi.json](openapi.json).`
  })
)

/** A parameter or a response header. */
interface DescribedSchema {
  readonly name?: string
  readonly schema: { readonly description?: string }
}

/**
 * Completes a part of the generated document. Parameters and headers get the descriptions of their schemas. Objects
 * accept additional fields, so that a validator with an older document accepts the fields that a later version adds.
 */
const completePart = (key: string, part: unknown): unknown => {
  if (key === "additionalProperties" && part === false) return undefined
  if (!Predicate.hasProperty(part, "schema") || !Predicate.hasProperty(part, "required")) return part
  const { name = "", schema: described } = part as DescribedSchema
  const { description, ...schema } = described
  return { ...part, description, schema, ...parameterDetails[name] }
}

/** Makes the OpenAPI 3.1 document of the API (specification 4). `serverUrl`, the URL of the API, can be relative. */
export const makeOpenApi = (serverUrl: string): OpenApi.OpenAPISpec =>
  JSON.parse(
    JSON.stringify({ ...OpenApi.fromApi(documentedApi), servers: [{ url: serverUrl }] }),
    completePart
  )
