import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import * as Client from "../../client/src/index.ts"
import { defaultOptions } from "../../client/src/PromptClient.ts"
import { errors } from "../../src/adapters/inbound/http/contract/Errors.ts"
import { readTable, root } from "./markdown.ts"

const document = "docs/client.md"

type OptionName =
  | keyof Client.ClientOptions
  | keyof Client.ResolvedOptions
  | `cache.${keyof Client.CacheOptions}`

const { baseUrl, timeout, maxRetries, cache } = defaultOptions
/** The cell `Default` of every option. */
const defaults: Readonly<Record<OptionName, string | number>> = {
  apiKey: "`PROMPT_RETRIEVAL_KEY`",
  baseUrl: `\`PROMPT_RETRIEVAL_URL\`, or \`${baseUrl}\``,
  timeout,
  maxRetries,
  headers: "none",
  signal: "none",
  fetch: "`globalThis.fetch`",
  logger: "none",
  cache: "none",
  "cache.ttl": cache.ttl,
  "cache.maxStale": cache.maxStale,
  "cache.maxEntries": cache.maxEntries,
  bundle: "none",
  mode: "`service-first`",
  fallback: "none"
}

it("the table of options lists every option of the client with its default", () => {
  expect(readTable(document, "Options").map(([option, value]) => [option, value])).toEqual(
    Object.entries(defaults).map(([option, value]) => [`\`${option}\``, value.toLocaleString("en-US")])
  )
})

it("the doc comments of the client's options state the defaults of the code", () => {
  const readComments = (file: string) => readFileSync(join(root, "client/src", file), "utf8")
  const comments = readComments("PromptClient.ts") + readComments("Cache.ts")
  for (const [option, value] of Object.entries(defaults)) {
    if (typeof value !== "number") continue
    const [, name] = /([^.]+)$/.exec(option)!
    const [, stated] = new RegExp(`Default: ([\\d,]+)\\.(?:(?!\\*/).)*\\*/\\s+readonly ${name}\\?`, "s").exec(
      comments
    )!
    expect([option, stated]).toEqual([option, value.toLocaleString("en-US")])
  }
})

it("the table of errors lists every error class of the client, with the statuses and the code of the service", () => {
  const rows = readTable(document, "Error classes").map(([name, status, code]) => ({
    name: name!.replaceAll("`", ""),
    status,
    code: code!.replaceAll("`", "")
  }))
  expect(rows.map(({ name }) => name).toSorted()).toEqual(
    Object.keys(Client)
      .filter((name) => name.endsWith("Error"))
      .toSorted()
  )
  const specs = Object.values(errors)
  const known = rows.filter(({ code }) => /^[A-Z_]+$/.test(code))
  expect(known.map(({ code }) => code).toSorted()).toEqual(
    [...new Set(specs.map(({ code }) => code))].toSorted()
  )
  for (const row of known) {
    const statuses = new Set(specs.filter(({ code }) => code === row.code).map(({ status }) => status))
    const response = { status: 0, message: "", requestId: undefined, retryAfter: undefined }
    expect({ ...row, name: Client.apiErrorOf({ ...response, code: row.code }).name }).toEqual({
      ...row,
      status: [...statuses].join(", ")
    })
  }
})
