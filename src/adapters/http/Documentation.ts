import { hash } from "node:crypto"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpApiScalar from "effect/http-api/HttpApiScalar"
import { type Representation, representationOf } from "./Caching.ts"
import type { HeaderFields } from "./Message.ts"
import { DescribedApi, openApi } from "./OpenApi.ts"

/** What stays the same for as long as the process lives. */
const pageOf = (text: string, contentType: string, headers: HeaderFields = {}): Representation => {
  const page = representationOf(Buffer.from(text), contentType, { "cache-control": "no-cache", ...headers })
  return { ...page, whole: { ...page.whole, isShared: true } }
}

/** `/openapi.json`. */
export const openApiPage = pageOf(JSON.stringify(openApi), "application/json")

/** How the page looks and what it offers; nothing that would reach another host. */
const scalar = {
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  documentDownloadType: "none",
  orderSchemaPropertiesBy: "preserve",
  authentication: { preferredSecurityScheme: "bearer" },
  favicon: "data:,",
  customCss: `
    /* Resolved content is long lines. */
    .cm-gutters + .cm-content { white-space: pre-wrap !important; overflow-wrap: anywhere; flex-shrink: 1 !important }
    /* Else the underscores of error codes are cut off. */
    .markdown-summary { line-height: 1.4 !important }
  `
} satisfies HttpApiScalar.ScalarConfig & Record<string, unknown>

const html = async (): Promise<string> => {
  const { handler, dispose } = HttpRouter.toWebHandler(HttpApiScalar.layer(DescribedApi, { scalar }), {
    disableLogger: true
  })
  const response = await handler(new Request("http://localhost/docs"))
  const text = await response.text()
  await dispose()
  return (
    text
      .replace("<html>", '<html lang="en">')
      // A library in it tries whether it may evaluate code; the policy would forbid that and report it.
      .replace('return new Function(""),!0', "return!1")
  )
}

/** Lets the page's own scripts run, by their hashes, and lets them call this service alone. */
const contentSecurityPolicy = (page: string): string => {
  const scripts = Array.from(page.matchAll(/<script>([\s\S]*?)<\/script>/g), ([, source]) => source!)
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

/** `/docs`: Scalar's page for the contract, with all that it needs inside. */
export const docsPage = async (): Promise<Representation> => {
  const text = await html()
  return pageOf(text, "text/html; charset=utf-8", {
    "content-security-policy": contentSecurityPolicy(text),
    "referrer-policy": "no-referrer"
  })
}
