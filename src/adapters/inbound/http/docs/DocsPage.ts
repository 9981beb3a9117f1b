import { hash } from "node:crypto"
import type { OpenAPISpec, OpenAPISpecOperation, OpenAPISpecParameter } from "effect/http-api/OpenApi"
import { type Representation, representDocument } from "../HttpMessage.ts"
import { makeOpenApi } from "./OpenApi.ts"

/** The parts of a JSON Schema that the page shows. */
interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly items?: JsonSchema
  readonly properties?: Definitions
  readonly description?: string
  readonly enum?: ReadonlyArray<string>
  readonly default?: unknown
}

type Definitions = Readonly<Record<string, JsonSchema>>

interface Parameter extends OpenAPISpecParameter {
  readonly schema: JsonSchema
  readonly examples?: { readonly default: { readonly value: unknown } }
}

const style = `
:root { color-scheme: light dark; font: 16px/1.5 sans-serif }
body { max-width: 60rem; margin: auto; padding: 1rem; overflow-wrap: anywhere }
details { border-top: 1px solid; padding: 0.5rem 0 }
label { display: block; margin: 0.5rem 0 }
input { display: block; box-sizing: border-box; width: 100%; font: inherit }
output { display: block; max-height: 75vh; overflow: auto; white-space: pre-wrap; font-family: monospace }`

/** Sends the request of a form, and shows the response below the button of the form. */
const script = `
addEventListener("submit", async (event) => {
  event.preventDefault()
  const form = event.target
  const output = form.querySelector("output")
  const key = document.querySelector("#key").value
  const headers = key === "" ? {} : { authorization: "Bearer " + key }
  const query = new URLSearchParams()
  let path = "." + form.dataset.path
  for (const { name, value, dataset } of form.elements) {
    if (value === "") continue
    if (dataset.in === "path") path = path.replace("{" + name + "}", encodeURIComponent(value))
    if (dataset.in === "query") query.append(name, value)
    if (dataset.in === "list") for (const item of value.split(",")) query.append(name, item.trim())
    if (dataset.in === "header") headers[name] = value
  }
  output.textContent = "Sending the request"
  try {
    const response = await fetch(query.size === 0 ? path : path + "?" + query, { headers, cache: "no-store" })
    const text = await response.text()
    const isJson = response.headers.get("content-type") === "application/json"
    output.textContent = [
      response.status + " " + response.statusText,
      isJson ? JSON.stringify(JSON.parse(text), null, 2) : text,
      ...Array.from(response.headers, (header) => header.join(": "))
    ].join("\\n")
  } catch (error) {
    output.textContent = error
  }
  output.scrollIntoView({ block: "nearest" })
})`

const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)

/** Converts Markdown to HTML. The descriptions of the document contain only code, links and paragraphs. */
const renderMarkdown = (markdown: string) =>
  escapeHtml(markdown)
    .replace(/`(.+?)`/g, "<code>$1</code>")
    .replace(/\[(.+?)\]\((.+?)\)/g, '<a href="$2">$1</a>')
    .replaceAll("\n\n", "<p>")

const renderParameter = ({ name, in: place, required, schema, description = "", examples }: Parameter) => {
  const isList = schema.type === "array"
  const hint = isList ? "separated by commas" : (schema.enum?.join(", ") ?? schema.default ?? "")
  const value = examples?.default.value ?? ""
  return `<label><b>${name}</b> (${place}): ${renderMarkdown(description)}
<input name="${name}" data-in="${isList ? "list" : place}" placeholder="${hint}" value="${value}" ${required ? "required" : ""}>
</label>`
}

/** Describes each field of a schema. The path of a field contains `[]` after the name of an array. */
const describeFields = (schema: JsonSchema, definitions: Definitions, path = ""): ReadonlyArray<string> => {
  const { $ref, items, properties = {} } = schema
  if (items !== undefined) return describeFields(items, definitions, `${path}[]`)
  const definition = definitions[$ref?.replace("#/components/schemas/", "") ?? ""]
  if (definition !== undefined) return describeFields(definition, definitions, path)
  return Object.entries(properties).flatMap(([name, property]) => {
    const { type, anyOf = [], description } = property
    const field = path === "" ? name : `${path}.${name}`
    const types = type ?? anyOf.map(({ type }) => type).join(" or ")
    const line = description === undefined ? [] : [`\`${field}\` (${types}): ${description}`]
    return [...line, ...describeFields(property, definitions, field)]
  })
}

const renderList = (title: string, items: ReadonlyArray<string>) =>
  items.length === 0
    ? ""
    : `<h4>${title}</h4>\n<ul>${items.map((item) => `<li>${renderMarkdown(item)}`).join("\n")}</ul>`

const renderOperation = (path: string, operation: OpenAPISpecOperation, definitions: Definitions) => {
  const { summary, description = "", parameters, responses } = operation
  const body = responses[200]?.content?.["application/json"]?.schema ?? {}
  return `<details>
<summary><b>${summary}</b> <code>GET ${path}</code></summary>
<p>${renderMarkdown(description)}
<form data-path="${path}">
${parameters.map((parameter) => renderParameter(parameter as Parameter)).join("\n")}
<button>Send</button>
<output></output>
</form>
${renderList(
  "Responses",
  Object.entries(responses).map(([status, { description }]) => `${status}: ${description}`)
)}
${renderList("Fields of a 200 response", describeFields(body, definitions))}
</details>`
}

const renderPage = ({ info, paths, components }: OpenAPISpec) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>${info.title}</title>
<style>${style}</style>
<h1>${info.title} ${info.version}</h1>
<p>${renderMarkdown(info.description ?? "")}
<p><label><b>API key</b> <input id="key" type="password" autocomplete="off"></label>
${Object.entries(paths)
  .flatMap(([path, { get }]) => (get === undefined ? [] : renderOperation(path, get, components.schemas)))
  .join("\n")}
<script>${script}</script>
`

const toCspSource = (code: string) => `'sha256-${hash("sha256", code, "base64")}'`

/** Allows only the script and the style of the page, and calls to this service. */
const contentSecurityPolicy = [
  "default-src 'none'",
  `script-src ${toCspSource(script)}`,
  `style-src ${toCspSource(style)}`,
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

/** Makes the page `/docs`, which describes the API and sends requests to URLs relative to the URL of the page. */
export const makeDocsPage = (): Representation =>
  representDocument(renderPage(makeOpenApi("/")), "text/html; charset=utf-8", {
    "content-security-policy": contentSecurityPolicy,
    "referrer-policy": "no-referrer"
  })
