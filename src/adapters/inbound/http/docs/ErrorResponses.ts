import { defaultRateLimits } from "../../../../application/access/Admission.ts"
import { InvalidParameter, positiveIntRule } from "../../../../domain/Page.ts"
import { RateLimited } from "../../../../domain/time/RateWindow.ts"
import {
  type ApiError,
  describeError,
  encodeErrorEnvelope,
  type ErrorDescription,
  errors,
  type ErrorTag
} from "../../contract/Errors.ts"
import type { JsonObject } from "../../../../domain/Json.ts"
import { STATUS_CODES } from "../transport/NodeHttp.ts"
import { describeErrorHeaders } from "./ResponseHeaders.ts"

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Returns a sentence that says when a response reports one of these errors. */
export const describeConditions = (tags: ReadonlyArray<ErrorTag>): string => {
  const conditions = tags.map((tag) => errors[tag].condition)
  return `${capitalize(new Intl.ListFormat("en", { type: "disjunction" }).format(conditions))}.`
}

const sampleError = (tag: ErrorTag): ErrorDescription => {
  switch (tag) {
    case "InvalidParameter":
      return describeError(InvalidParameter(`page ${positiveIntRule}`))
    case "RateLimited":
      return describeError(RateLimited("key", defaultRateLimits.perKey, 18_000))
    default:
      return describeError({ _tag: tag } as ApiError)
  }
}

/**
 * Describes the envelope of the errors with one status. The schema accepts any string as `code`, because later versions
 * may add codes. The examples of `code` are the codes of this version.
 */
export const describeErrorEnvelope = (tags: ReadonlyArray<ErrorTag>): JsonObject => {
  const codes = [...new Set(tags.map((tag) => errors[tag].code))]
  const alternatives = codes.map((code) => `\`${code}\``).join(" or ")
  return {
    type: "object",
    properties: {
      error: {
        type: "object",
        properties: {
          code: {
            type: "string",
            description: `Machine-readable and stable code: ${alternatives}. Later versions may add codes.`,
            examples: codes
          },
          message: { type: "string", description: "Human-readable message. May change." }
        },
        required: ["code", "message"]
      }
    },
    required: ["error"]
  }
}

/** Returns the name of the OpenAPI component for a status, such as `NotFound` for 404. */
export const toComponentName = (status: number): string => (STATUS_CODES[status] ?? "").replaceAll(" ", "")

export const describeErrorResponse = (status: number, tags: ReadonlyArray<ErrorTag>): JsonObject => {
  const samples = tags.map(sampleError)
  return {
    description: describeConditions(tags),
    headers: describeErrorHeaders(status),
    content: {
      "application/json": {
        schema: { $ref: `#/components/schemas/${toComponentName(status)}` },
        examples: Object.fromEntries(
          samples.map((sample, i) => [
            tags[i],
            { summary: sample.message, value: JSON.parse(encodeErrorEnvelope(sample)) }
          ])
        )
      }
    }
  }
}
