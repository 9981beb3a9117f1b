import { hash } from "node:crypto"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpApiScalar from "effect/http-api/HttpApiScalar"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import { Api } from "../../contract/Api.ts"
import { representPage, type Representation } from "../response/Representation.ts"
import { makeOpenApi } from "./OpenApi.ts"

/**
 * The configuration of Scalar, the library that renders the page `/docs`. With this configuration, nothing on the page
 * calls another host.
 */
const scalarConfig = {
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  documentDownloadType: "none",
  orderSchemaPropertiesBy: "preserve",
  authentication: { preferredSecurityScheme: "bearer" },
  favicon: "data:,"
} satisfies HttpApiScalar.ScalarConfig & Record<string, unknown>

/**
 * Marks an optional parameter so that Scalar sends it only if the user selects it. Scalar would send the default value
 * of an unmarked parameter, or the first value of its enum.
 */
const deselectOptionalParameter = (_: string, part: unknown): unknown =>
  Predicate.isObject(part) && "in" in part && "required" in part && part.required === false
    ? { ...part, examples: { default: { "x-disabled": true } } }
    : part

const renderScalar = async (serverUrl: string): Promise<string> => {
  const document = JSON.parse(JSON.stringify(makeOpenApi(serverUrl)), deselectOptionalParameter)
  const page = HttpApiScalar.layer(
    Api.annotate(OpenApi.Transform, () => document),
    { scalar: scalarConfig }
  )
  const { handler, dispose } = HttpRouter.toWebHandler(page, { disableLogger: true })
  const response = await handler(new Request("http://localhost/docs"))
  const text = await response.text()
  await dispose()
  return (
    text
      .replace("<html>", '<html lang="en">')
      // Removes the code with which a library tests whether the page may evaluate code, because the browser would
      // report the test as a violation of the page's policy.
      .replace('return new Function(""),!0', "return!1")
  )
}

/**
 * Makes the content security policy of a page. The policy allows only the page's own scripts, which the policy lists by
 * their hashes. The scripts may call only this service.
 */
const makeContentSecurityPolicy = (page: string): string => {
  const scripts = Array.from(page.matchAll(/<script>([\s\S]*?)<\/script>/g), ([, source = ""]) => source)
  const hashes = scripts.map((source) => `'sha256-${hash("sha256", source, "base64")}'`)
  return [
    "default-src 'none'",
    `script-src ${hashes.join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")
}

/**
 * Makes the page `/docs`: interactive documentation in one self-contained file, which sends requests to `serverUrl`.
 */
export const makeDocsPage = async (serverUrl: string): Promise<Representation> => {
  const text = await renderScalar(serverUrl)
  return representPage(text, "text/html; charset=utf-8", {
    "content-security-policy": makeContentSecurityPolicy(text),
    "referrer-policy": "no-referrer"
  })
}
