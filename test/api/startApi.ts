import * as Record from "effect/Record"
import { beforeAll } from "vitest"
import { PromptsGroup } from "../../src/adapters/inbound/contract/Api.ts"
import type { Archive } from "../../src/application/transfer/Archive.ts"
import demo from "../../src/demo/workspace.json" with { type: "json" }
import { key } from "../support/archives.ts"
import { exchange, type HttpResponse, rawRequest } from "../support/clients/rawHttp.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { readMetric } from "../support/services/metrics.ts"
import { type ObservedService, startObservedService } from "../support/services/startObservedService.ts"
import { runService, unlimited } from "../support/services/startService.ts"
import { expectDocumented } from "./openapi/document.ts"

/**
 * Starts a service with these workspaces before the tests of a file or suite. After the tests, stops the service and
 * searches its output for leaked secrets.
 */
export const startApi = (
  archives: ReadonlyArray<Archive>,
  options: { readonly env?: Readonly<Record<string, string>> } = {}
) => {
  const { env, sql, acquire } = makeTestDatabase(archives)
  let service: ObservedService | undefined
  beforeAll(async () => {
    const settings = { ...env, ...unlimited, ...options.env }
    service = await acquire(runService(() => startObservedService(settings)))
  })
  return {
    service: () => service!,
    /** The environment variables that select the database of the service. */
    env,
    /** Sends a request, and expects the response to match the OpenAPI document. */
    send: async (target: string, lines: ReadonlyArray<string>, method?: string): Promise<HttpResponse> => {
      const response = await exchange(service!.port, rawRequest(target, lines, method))
      expectDocumented(target, response)
      return response
    },
    sql,
    /** Returns the value of a series in the metrics of the service. */
    metric: (series: string) => readMetric(service!.metricsPort, series)
  }
}

/** Returns the demo workspace with its only key. */
export const makeDemoTenant = () => {
  const demoArchive = structuredClone(demo) as unknown as Archive
  const { plaintext, stored } = key(demoArchive.workspace.id, demoArchive.users[0]!)
  return { key: plaintext, archive: { ...demoArchive, api_keys: [stored] } }
}

/** Like `startApi`, with the demo workspace. Also returns the workspace and its only key. */
export const startDemoApi = () => {
  const tenant = makeDemoTenant()
  return { ...startApi([tenant.archive]), ...tenant }
}

/** Returns the Authorization header line for a key. */
export const authorize = (key: string): string => `Authorization: Bearer ${key}`

/** Returns the target of each endpoint by name. The prompt must have a version 1. */
export const endpointTargets = (promptId: string) =>
  Record.map(PromptsGroup.endpoints, ({ path }) => path.replace(":id", promptId).replace(":version", "1"))
