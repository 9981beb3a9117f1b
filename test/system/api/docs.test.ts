import { createHash } from "node:crypto"
import { beforeAll, expect, it } from "vitest"
import { makeOpenApi } from "../../../src/adapters/inbound/http/docs/OpenApi.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { openBrowser, type Playwright } from "../../support/programs/browser.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"
import { runService, type Service } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const perProcess = 10
const publicUrl = "https://prompts.example.com/base"

const acquire = makeAcquire()
let service: Service
let withPublicUrl: Service
beforeAll(async () => {
  const env = { DATA_DIR: makeTestDirectory("docs-") }
  const limits = { RATE_LIMIT_PER_PROCESS: String(perProcess) }
  service = await acquire(
    runService(() => startObservedService({ ...env, ...limits }, "/readyz", ["--demo"]))
  )
  // Nothing listens on port 9.
  const noDatabase = { DATABASE_URL: "postgres://postgres@127.0.0.1:9/none" }
  const settings = { ...noDatabase, PUBLIC_URL: `${publicUrl}/` }
  withPublicUrl = await acquire(runService(() => startObservedService(settings, "/healthz")))
})

it("GET /openapi.json returns the OpenAPI document, which names PUBLIC_URL as the server if the variable is set", async () => {
  const read = async ({ url }: Service) => (await fetch(`${url}/openapi.json`)).json()
  expect(await read(service)).toEqual(makeOpenApi("/"))
  expect(await read(withPublicUrl)).toEqual({ ...makeOpenApi("/"), servers: [{ url: publicUrl }] })
})

it.each(["/", "/docs/", "/?a=b"])("GET and HEAD %s redirect to /docs", async (target) => {
  for (const method of ["GET", "HEAD"])
    for (const [{ url }, location] of [
      [service, "/docs"],
      [withPublicUrl, "/base/docs"]
    ] as const) {
      const response = await fetch(url + target, { method, redirect: "manual" })
      expect([response.status, response.headers.get("location")]).toEqual([308, location])
      expect(await response.text()).toBe("")
    }
})

it("the content security policy of GET /docs allows only the page's script and style, and calls to the service", async () => {
  const response = await fetch(`${service.url}/docs`)
  expect(response.status).toBe(200)
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8")
  expect(response.headers.get("referrer-policy")).toBe("no-referrer")
  const page = await response.text()
  expect(page.length).toBeLessThan(100_000)
  const [script, style] = ["script", "style"].map((tag) => {
    const [, source = "", ...others] = page.split(new RegExp(`</?${tag}>`))
    expect(others.length).toBe(1)
    return `'sha256-${createHash("sha256").update(source).digest("base64")}'`
  })
  expect(response.headers.get("content-security-policy")!.split("; ")).toEqual([
    "default-src 'none'",
    `script-src ${script}`,
    `style-src ${style}`,
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ])
})

it.each(["/openapi.json", "/docs"])(
  "GET %s needs no key, has Cache-Control: no-cache, and does not count against the rate limits",
  async (path) => {
    const { headers } = await fetch(service.url + path, { method: "HEAD" })
    const etag = headers.get("etag")!
    expect(etag).toMatch(/^"[A-Za-z0-9_-]{43}"$/)
    expect(headers.get("cache-control")).toBe("no-cache")
    expect(headers.get("x-content-type-options")).toBe("nosniff")
    for (let i = 0; i <= perProcess; i++) {
      const again = await fetch(service.url + path, { headers: { "if-none-match": etag } })
      expect([again.status, again.headers.get("etag"), await again.text()]).toEqual([304, etag, ""])
    }
  }
)

it("in a browser, /docs sends the inputs of the user and scrolls each response into view, without errors, policy violations or calls to other hosts", async () => {
  const context = await acquire(openBrowser)
  const page: Playwright = await context.newPage()
  page.setDefaultTimeout(15_000)
  const problems: Array<string> = []
  const requests: Array<string> = []
  page.on("console", (message: Playwright) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text())
  })
  page.on("pageerror", (error: Playwright) => problems.push(error.message))
  page.on("request", (request: Playwright) => {
    if (!/^(data|blob):/.test(request.url())) requests.push(`${request.method()} ${request.url()}`)
  })
  await page.exposeFunction("reportViolation", (directive: string) => problems.push(`CSP: ${directive}`))
  await page.addInitScript(
    `addEventListener("securitypolicyviolation", (event) => reportViolation(event.effectiveDirective))`
  )

  /** The path of each operation, the end of its target with the example parameters, and a part of the response. */
  const operations = [
    ["/api/v1/prompts", "", '"title": "Product announcement"'],
    ["/api/v1/prompts/{id}", "/support-agent", "You are a support agent of {{shop}}."],
    ["/api/v1/prompts/{id}/resolved", "/support-agent/resolved", "Write as Acme does: warm and calm"],
    ["/api/v1/prompts/{id}/versions", "/support-agent/versions", "End with a next step"],
    ["/api/v1/prompts/{id}/versions/{version}", "/support-agent/versions/2", '"applied_suggestions": 2']
  ] as const

  /** Opens an operation, and sends its request with these inputs. Returns the element that shows the response. */
  const sendRequest = async (path: string, inputs: Readonly<Record<string, string>> = {}) => {
    const operation = page.locator("details", { has: page.getByText(`GET ${path}`, { exact: true }) })
    await operation.locator("summary").click()
    for (const [label, value] of Object.entries(inputs)) await operation.getByLabel(label).fill(value)
    await operation.getByRole("button", { name: "Send" }).click()
    return operation.getByRole("status").filter({ hasText: "200 OK" })
  }

  await expect.poll(service.output).toMatch(/key_live_[0-9a-f]{64}/)
  const [key] = /key_live_[0-9a-f]{64}/.exec(service.output())!
  await page.setViewportSize({ width: 375, height: 667 })
  await page.goto(`${service.url}/docs`)
  await page.getByLabel("API key").fill(key)
  for (const [path, , content] of operations) {
    const response = await sendRequest(path)
    await response.filter({ hasText: content }).waitFor()
    const { x, y, width } = await response.boundingBox()
    expect(y).toBeGreaterThanOrEqual(0)
    expect(y).toBeLessThan(334)
    expect(x).toBeGreaterThanOrEqual(0)
    expect(x + width).toBeLessThanOrEqual(375)
  }
  const inputs = {
    "prompt (query)": "support-agent, product-announcement",
    "names (query)": "true",
    "X-Request-Id": "from-docs"
  }
  const response = await (await sendRequest("/api/v1/resolved", inputs)).innerText()
  expect(response).toContain("x-request-id: from-docs")
  expect(JSON.parse(/\n(\{\n.*\n\})\n/s.exec(response)![1]!).meta.prompts).toEqual([
    { name: "support-agent", version: expect.any(Number) },
    { name: "product-announcement", version: expect.any(Number) }
  ])
  expect(problems).toEqual([])
  expect(requests).toEqual([
    `GET ${service.url}/docs`,
    ...operations.map(([, target]) => `GET ${service.url}/api/v1/prompts${target}`),
    `GET ${service.url}/api/v1/resolved?prompt=support-agent&prompt=product-announcement&names=true`
  ])
  const stored = await page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
  expect(stored).not.toContain(key)
})
