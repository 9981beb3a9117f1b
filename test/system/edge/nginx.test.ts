import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { makeResources } from "../../support/database.ts"
import { startNginx } from "../../support/programs/edge.ts"
import { exchange, rawRequest } from "../../support/clients/rawHttp.ts"
import { acquireOrigin, cacheSuite, type Origin } from "./suite.ts"

cacheSuite({ name: "nginx", start: startNginx })

describe("nginx in front of the service and a web application", () => {
  let resources: ReturnType<typeof makeResources>
  let origin: Origin

  beforeAll(async () => {
    ;({ resources, origin } = await acquireOrigin())
  })
  afterAll(() => resources?.release())

  it("nginx serves the API and a web application on one domain", async () => {
    const { port } = await resources.acquire(startNginx(origin.service))
    const readBody = async (path: string) => (await exchange(port, rawRequest(path))).body
    for (const path of [
      "/",
      "/healthz",
      "/readyz",
      "/docs",
      "/openapi.json",
      "/api/v1/../../readyz",
      "/api"
    ]) {
      expect(await readBody(path)).toBe("web")
    }
    expect(JSON.parse(await readBody("/api/v1/prompts"))).toEqual({
      error: { code: "UNAUTHORIZED", message: "Missing or malformed Authorization header" }
    })
  })
})
