import { makeOpenApi } from "../../../src/adapters/inbound/http/docs/OpenApi.ts"

// biome-ignore lint/suspicious/noExplicitAny: the tests read arbitrary parts of a document
export type Json = any

/** The OpenAPI document that `/openapi.json` returns if `PUBLIC_URL` is unset. */
export const document: Json = JSON.parse(JSON.stringify(makeOpenApi("/")))

/** Returns a part of the document. Follows the reference if the part is a `$ref`. */
export const deref = (part: Json): Json =>
  part.$ref === undefined
    ? part
    : part.$ref
        .slice(2)
        .split("/")
        .reduce((at: Json, key: string) => at[key], document)
