import * as Effect from "effect/Effect"
import type { AdmittedCaller } from "../../../../application/access/Admission.ts"
import { recordRequestMetrics } from "./RequestMetrics.ts"

/** A completed request, as the log and the metrics report it. */
export interface CompletedRequest {
  /** The method; `undefined` if the request could not be parsed. */
  readonly method: string | undefined
  /** The pattern of the route; `undefined` if the path matches no route. */
  readonly route: string | undefined
  readonly status: number
  readonly milliseconds: number
  readonly requestId: string
  readonly caller: AdmittedCaller | undefined
}

/** The routes that load balancers and supervisors request continuously. */
const probeRoutes: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz"])

/**
 * Counts a completed request and writes its log line. The log level is debug for a probe, otherwise info. The line
 * contains no text that a caller can choose freely: no path, no query, and no header except the request id.
 */
export const recordRequest = (request: CompletedRequest): Effect.Effect<void> => {
  const { method, route, status, milliseconds, requestId, caller } = request
  recordRequestMetrics(route, status, milliseconds)
  const log = probeRoutes.has(route) ? Effect.logDebug : Effect.logInfo
  return log("request", {
    method: method ?? null,
    route: route ?? null,
    status,
    duration_ms: Math.round(milliseconds * 1000) / 1000,
    request_id: requestId,
    workspace_id: caller?.workspaceId ?? null,
    key_id: caller?.keyId ?? null
  })
}
