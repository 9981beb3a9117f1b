import { hash } from "node:crypto"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpApiScalar from "effect/http-api/HttpApiScalar"
import type { HeaderFields } from "../HttpMessage.ts"
import { type Representation, toRepresentation } from "../response/Representation.ts"
import { DocumentedApi, openApi } from "./OpenApi.ts"

/** Returns the representation of a page that stays the same for the life of the process. */
const toStaticRepresentation = (
  text: string,
  contentType: string,
  headers: HeaderFields = {}
): Representation => {
  const page = toRepresentation(Buffer.from(text), contentType, { "cache-control": "no-cache", ...headers })
  return { ...page, full: { ...page.full, isShared: true } }
}

/** The page `/openapi.json`. */
export const openApiPage = toStaticRepresentation(JSON.stringify(openApi), "application/json")

/** Scalar's configuration: nothing on the page calls another host. */
const scalarConfig = {
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  // The document has its own code samples, which the tests run.
  hiddenClients: true,
  showDeveloperTools: "never",
  documentDownloadType: "none",
  orderSchemaPropertiesBy: "preserve",
  authentication: { preferredSecurityScheme: "bearer" },
  favicon: "data:,",
  customCss: `
    /* Resolved content is long lines. */
    .cm-gutters + .cm-content { white-space: pre-wrap !important; overflow-wrap: anywhere; flex-shrink: 1 !important }
  `
} satisfies HttpApiScalar.ScalarConfig & Record<string, unknown>

/** Renders Scalar's page for the contract. */
const renderScalar = async (): Promise<string> => {
  const { handler, dispose } = HttpRouter.toWebHandler(
    HttpApiScalar.layer(DocumentedApi, { scalar: scalarConfig }),
    {
      disableLogger: true
    }
  )
  const response = await handler(new Request("http://localhost/docs"))
  const text = await response.text()
  await dispose()
  return (
    text
      .replace("<html>", '<html lang="en">')
      // A library on the page tests whether it may evaluate code, which the page's policy would block and report.
      .replace('return new Function(""),!0', "return!1")
  )
}

/** Makes a policy that lets only the page's own scripts run, by their hashes, and lets them call only this service. */
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

/** Makes the page `/docs`: the interactive documentation in one self-contained file. */
export const makeDocsPage = async (): Promise<Representation> => {
  const text = await renderScalar()
  return toStaticRepresentation(text, "text/html; charset=utf-8", {
    "content-security-policy": makeContentSecurityPolicy(text),
    "referrer-policy": "no-referrer"
  })
}
