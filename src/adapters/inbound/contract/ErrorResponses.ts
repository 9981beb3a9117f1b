import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import { type EndpointShape, type ErrorTag, errors } from "./Errors.ts"
import { errorHeaders } from "./Headers.ts"

/** The schema accepts any string as `code`, because later versions can add codes. */
const ErrorEnvelope = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String.annotate({ description: "Stable code for programs.", examples: ["NOT_FOUND"] }),
    message: Schema.String.annotate({ description: "Text for people.", examples: ["Prompt not found"] })
  })
}).annotate({ identifier: "Error", description: "An error." })

/** Makes one schema of an error response per status. The schema's description lists the errors with the status. */
const makeErrorResponses = (tags: ReadonlyArray<ErrorTag>) =>
  Array.from(
    Map.groupBy(tags, (tag) => errors[tag].status),
    ([status, tags]) => {
      const conditions = tags.map((tag) => `\`${errors[tag].code}\`: ${errors[tag].condition}.`)
      return HttpApiSchema.WithHeaders(ErrorEnvelope, errorHeaders)
        .annotate({ description: conditions.join(" ") })
        .pipe(HttpApiSchema.status(status))
    }
  )

const tags = Object.keys(errors) as ReadonlyArray<ErrorTag>

/** Returns the error responses of an endpoint of the API. The errors that only some endpoints report come first. */
export const apiErrors = (endpoint: EndpointShape) => {
  const specific = tags.filter((tag) => errors[tag].isReportedBy?.(endpoint))
  return makeErrorResponses([...specific, ...commonErrors])
}

/** The errors that every endpoint of the API reports. */
const commonErrors = tags.filter((tag) => errors[tag].isReportedBy === undefined)

/** The error responses of paths outside the API. */
export const serviceErrors = makeErrorResponses(
  commonErrors.filter((tag) => ["request", "service"].includes(errors[tag].subject))
)
