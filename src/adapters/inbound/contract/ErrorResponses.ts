import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import { type ErrorTag, errors } from "./Errors.ts"
import { errorHeaders } from "./Headers.ts"

/** The schema accepts any string as `code`, because later versions may add codes. */
const ErrorEnvelope = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String.annotate({ description: "Stable code for programs.", examples: ["NOT_FOUND"] }),
    message: Schema.String.annotate({ description: "Text for people.", examples: ["Prompt not found"] })
  })
}).annotate({ identifier: "Error", description: "An error." })

/** Makes one schema of an error response for each status. The description of a schema lists its errors. */
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

/** The errors that every endpoint of the API reports. */
const commonErrors = (Object.keys(errors) as ReadonlyArray<ErrorTag>).filter(
  (tag) => errors[tag].subject !== "workspace" && tag !== "InvalidParameter" && tag !== "RouteNotFound"
)

/** Returns the error responses of an API endpoint: the given errors, and the errors that every endpoint reports. */
export const apiErrors = (...tags: ReadonlyArray<ErrorTag>) => makeErrorResponses([...tags, ...commonErrors])

/** The error responses of paths outside the API. */
export const serviceErrors = makeErrorResponses(
  commonErrors.filter((tag) => ["request", "service"].includes(errors[tag].subject))
)
