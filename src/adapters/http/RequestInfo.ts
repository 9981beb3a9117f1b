import * as Context from "effect/Context"
import type { AdmittedCaller } from "../../application/Admission.ts"

/** What becomes known of a request on its way, for its log line. */
export interface RequestInfo {
  caller: AdmittedCaller | undefined
}

/** The current request's info; each request brings its own. */
export const RequestInfo = Context.Reference<RequestInfo>("prompt-retrieval/RequestInfo", {
  defaultValue: () => ({ caller: undefined })
})

/** What a request id looks like. */
export const acceptable = /^[A-Za-z0-9._-]{1,128}$/

/** The request's id: the caller's own if it is 1 to 128 of `[A-Za-z0-9._-]`, else a new one (DESIGN.md section 5). */
export const requestIdOf = (header: string | undefined): string =>
  header !== undefined && acceptable.test(header) ? header : crypto.randomUUID()
