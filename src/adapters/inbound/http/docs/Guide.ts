import { defaultRateLimits } from "../../../../application/access/Admission.ts"
import { keyPrefix } from "../../../../domain/ApiKey.ts"
import { defaultPerPage, maxPerPage } from "../../../../domain/Page.ts"
import { windowSeconds } from "../../../../domain/time/RateWindow.ts"
import { errors, type ErrorTag } from "../../contract/Errors.ts"
import {
  cachingHeaders,
  sharedMaxAgeSeconds,
  staleWhileRevalidateSeconds
} from "../response/Representation.ts"
import { describeConditions } from "./ErrorResponses.ts"

const toErrorItem = (tags: ReadonlyArray<ErrorTag>): string => {
  const { status, code } = errors[tags[0] as ErrorTag]
  return `- **${status}** \`${code}\`: ${describeConditions(tags)}`
}

const errorList = Array.from(
  Map.groupBy(
    Object.keys(errors) as ReadonlyArray<ErrorTag>,
    (tag) => `${errors[tag].status} ${errors[tag].code}`
  ),
  ([, tags]) => toErrorItem(tags)
).join("\n")

/** The guide at the start of the API's documentation, in Markdown. */
export const guide = `Prompts, their resolved content and their versions, for applications that read them at run time.

## Authentication

Send an API key with each request: \`Authorization: Bearer <key>\`. A key is \`${keyPrefix}\` and 64 hexadecimal digits; the
operator of the service issues it. A key reads only its own workspace: resources of other workspaces return 404. Call the API
from a server: a browser would expose the key, and the service sends no CORS headers.

The code samples read the URL of the service and the key from the environment variables \`PROMPT_RETRIEVAL_URL\` and
\`PROMPT_RETRIEVAL_KEY\`.

## Pagination

A successful response is \`{"data": …}\`, plus \`meta\` for a page of a list. \`page\` counts from 1, and \`per_page\` is ${defaultPerPage} by
default. A \`per_page\` over ${maxPerPage} becomes ${maxPerPage}; \`page=0\` and other invalid values return 400. Unknown parameters are ignored.
\`meta.total\` is the number of items on all pages, and a page past the end is empty. Prompts are listed most recently updated first, so an
update moves a prompt to the first page, even while you read page by page.

## Errors

An error response is \`{"error": {"code", "message"}}\`. Switch on \`code\`; \`message\` is for people. Retry a request only
after 408, 429, 500 and 503.

${errorList}

## Rate limits

Each key may make ${defaultRateLimits.perKey} requests per minute, and all keys together ${defaultRateLimits.perProcess} per minute to one process of the service, unless the operator has
set other limits. A request over a limit returns 429: wait for the seconds in \`Retry-After\` (1 to ${windowSeconds}), plus a random part of
a second, then try again. \`RateLimit-Policy\` names the limit: \`key\` or \`process\`.

## Caching

Successful responses have \`Cache-Control: ${cachingHeaders["cache-control"]}\` and \`Vary: ${cachingHeaders.vary}\`:
a shared cache may keep them for ${sharedMaxAgeSeconds} s, and serve them for another ${staleWhileRevalidateSeconds} s while it fetches new ones, separately for each key. An
edit is visible at the service itself within milliseconds. Send the \`ETag\` of a response as \`If-None-Match\`: while the
response is the same, the service returns 304 without a body. Errors are never cached.

## Request ids

Every response has an \`X-Request-Id\`: quote it when you report a problem.

## Compatibility

New endpoints, query parameters, fields, headers and error codes may be added to \`/api/v1\` without notice: ignore fields that you
do not know, and treat an unknown code like others with its status. The schemas of this document allow both. Incompatible changes
get a new prefix.

## Other paths

\`/healthz\` returns 200 while the process runs, and \`/readyz\` while it can serve requests; neither needs a key. The OpenAPI
document of this API is at [/openapi.json](openapi.json). \`HEAD\` works on every path and returns the headers of \`GET\` without
the body.`
