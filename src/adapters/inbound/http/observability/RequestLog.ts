import * as Effect from "effect/Effect"
import type { AdmittedCaller } from "../../../../application/Admission.ts"
import { recordRequestMetrics } from "../../../../application/Metrics.ts"

/** A request that has been answered. */
export interface CompletedRequest {
  /** Absent where nothing of the request could be read. */
  readonly method: string | undefined
  /** The route's pattern; absent where there is none. */
  readonly route: string | undefined
  readonly status: number
  readonly milliseconds: number
  readonly requestId: string
  readonly caller: AdmittedCaller | undefined
}

/**
 * Counts an answered request and writes its one log line (DESIGN.md section 8). It has nothing in it that a caller
 * chose freely: neither path nor query, no header but the request's id.
 */
export const recordRequest = (answered: CompletedRequest): Effect.Effect<void> => {
  const { method, route, status, milliseconds, requestId, caller } = answered
  recordRequestMetrics(route, status, milliseconds)
  return Effect.logInfo("request", {
    method: method ?? null,
    route: route ?? null,
    status,
    duration_ms: Math.round(milliseconds * 1000) / 1000,
    request_id: requestId,
    workspace_id: caller?.workspaceId ?? null,
    key_id: caller?.keyId ?? null
  })
}
