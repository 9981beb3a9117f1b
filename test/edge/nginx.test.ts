import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { makeResources } from "../support/database.ts"
import { nginxBefore, noNginx } from "../support/edge.ts"
import { exchange, rawRequest } from "../support/rawHttp.ts"
import type { Service } from "../support/service.ts"
import { cacheSuite, type Origin, started, traffic } from "./suite.ts"

cacheSuite({ name: "nginx", missing: noNginx, before: nginxBefore })

describe.skipIf(noNginx !== undefined)("a cache that ignores Vary", () => {
  let resources: ReturnType<typeof makeResources>
  let behind: Origin
  let service: Service

  beforeAll(async () => {
    ;({ resources, behind } = await started())
    service = behind.service
  })
  afterAll(() => resources?.release())

  it("is caught: callers get each other's answers", async () => {
    const port = await resources.acquire(
      nginxBefore(service, {
        '"$request_method $request_uri $http_authorization";':
          '"$request_method $request_uri"; proxy_ignore_headers Vary;'
      })
    )
    const { breaks } = await traffic(port, behind)
    expect(breaks).toEqual(
      expect.arrayContaining([
        expect.stringMatching("wrong: GET /api/v1/prompts by undefined"),
        expect.stringMatching("another's entry: GET /api/v1/prompts by Bearer")
      ])
    )
  })
})

it.skipIf(noNginx !== undefined)("nginx gives the API and a web application one domain", async () => {
  const { resources, behind } = await started()
  try {
    const port = await resources.acquire(nginxBefore(behind.service))
    const bodyOf = async (path: string) => (await exchange(port, rawRequest(path))).body
    for (const path of [
      "/",
      "/healthz",
      "/readyz",
      "/docs",
      "/openapi.json",
      "/api/v1/../../readyz",
      "/api"
    ]) {
      expect(await bodyOf(path)).toBe("web")
    }
    expect(JSON.parse(await bodyOf("/api/v1/prompts"))).toEqual({
      error: { code: "UNAUTHORIZED", message: "Missing or malformed Authorization header" }
    })
  } finally {
    await resources.release()
  }
})
