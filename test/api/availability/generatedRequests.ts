import * as Schema from "effect/Schema"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import type { HttpResponse } from "../../support/clients/rawHttp.ts"

const positiveIntUpTo = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))

/**
 * Returns a schema of valid and invalid requests to every endpoint, for the prompts of an archive. Also returns
 * functions that make the target and the `If-None-Match` lines of a generated request.
 */
export const makeRequestGenerator = (archive: Archive) => {
  const GeneratedRequest = Schema.Struct({
    method: Schema.Literals(["GET", "HEAD"]),
    prompt: positiveIntUpTo(archive.prompts.length),
    resource: Schema.Literals(["list", "", "/resolved", "/versions", "/versions/1", "/versions/2"]),
    query: Schema.Struct({
      page: Schema.optionalKey(positiveIntUpTo(3)),
      per_page: Schema.optionalKey(positiveIntUpTo(200)),
      tag: Schema.optionalKey(Schema.Literals(["production", "gr%C3%B6%C3%9Fe", "none", ""])),
      type: Schema.optionalKey(Schema.Literals(["system", "user", "no such type"])),
      folder_id: Schema.optionalKey(Schema.Literals(archive.folders.map(({ id }) => id))),
      unknown: Schema.optionalKey(Schema.Literals(["", "%", "a+b", "%ff"]))
    }),
    upperCase: Schema.Boolean,
    absoluteForm: Schema.Boolean,
    ifNoneMatch: Schema.Literals(["absent", "same", "weak, in a list", "any", "another"])
  })

  const toTarget = ({
    prompt,
    resource,
    query,
    upperCase,
    absoluteForm
  }: typeof GeneratedRequest.Type): string => {
    const { id } = archive.prompts[prompt - 1]!
    const path = resource === "list" ? "" : `/${upperCase ? id.toUpperCase() : id}${resource}`
    const parameters = Object.entries(query).map(([name, value]) => `${name}=${value}`)
    const origin = absoluteForm ? "http://else.where" : ""
    return `${origin}/api/v1/prompts${path}${parameters.length === 0 ? "" : `?${parameters.join("&")}`}`
  }

  const toConditionLines = (
    { ifNoneMatch }: typeof GeneratedRequest.Type,
    etag: string
  ): ReadonlyArray<string> => {
    const values = { same: etag, "weak, in a list": `"x", W/${etag}`, any: "*", another: '"x"' }
    return ifNoneMatch === "absent" ? [] : [`If-None-Match: ${values[ifNoneMatch]}`]
  }

  return { GeneratedRequest, toTarget, toConditionLines }
}

/** Returns a response without `X-Request-Id` and `Date`, which differ even if the requests are equal. */
export const toComparable = ({ status, headers, body }: HttpResponse) => ({
  status,
  body,
  headers: headers.filter(([name]) => name !== "x-request-id" && name !== "date").toSorted()
})
