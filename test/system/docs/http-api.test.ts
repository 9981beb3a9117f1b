import { execFile } from "node:child_process"
import { mkdirSync, symlinkSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { errors } from "../../../src/adapters/inbound/contract/Errors.ts"
import { makeOpenApi } from "../../../src/adapters/inbound/http/docs/OpenApi.ts"
import { operationalPaths } from "../../../src/adapters/inbound/contract/Api.ts"
import { toHeaderPairs, withCommonHeaders } from "../../../src/adapters/inbound/http/HttpMessage.ts"
import { toErrorResponse } from "../../../src/adapters/inbound/http/response/ErrorResponse.ts"
import { defaultRateLimits } from "../../../src/application/access/Admission.ts"
import { RateLimited } from "../../../src/domain/ApiKey.ts"
import { positiveIntRule } from "../../../src/domain/Page.ts"
import { startDemoApi } from "../../api/startApi.ts"
import { makeResources } from "../../support/database.ts"
import { listenOnFreePort } from "../../support/ports.ts"
import { type CodeBlock, readCodeBlocks, readTable, root } from "../../docs/markdown.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const path = "docs/http-api.md"
const exec = promisify(execFile)
const resources = makeResources()

const directory = makeTestDirectory("http-api-")
/** A PATH on which curl is the only program. */
const curlPath = join(directory, "bin")
beforeAll(async () => {
  const { stdout: curl } = await exec("/bin/sh", ["-c", "command -v curl"])
  mkdirSync(curlPath)
  symlinkSync(curl.trim(), join(curlPath, "curl"))
})
afterAll(() => resources.release())

const { service, key: apiKey } = startDemoApi()

type Language = "bash" | "ts" | "python"

const commands: Readonly<Record<Language, (code: string) => readonly [string, ReadonlyArray<string>]>> = {
  bash: (code) => ["/bin/bash", ["-euc", code]],
  ts: (code) => [process.execPath, ["--input-type=module-typescript", "--eval", code]],
  python: (code) => ["python3", ["-Ic", code]]
}

/** Runs an example against the service at a URL and returns its output. Rejects if the example fails. */
const runExample = async (language: Language, code: string, url = service().url): Promise<string> => {
  const [program, args] = commands[language](code)
  const { stdout } = await exec(program, args, {
    cwd: root,
    env: {
      PATH: language === "bash" ? curlPath : process.env.PATH,
      HOME: process.env.HOME,
      PROMPT_RETRIEVAL_URL: url,
      PROMPT_RETRIEVAL_KEY: apiKey
    }
  })
  return stdout
}

/** Normalizes the output of an example and the documented output, so that both texts can be compared. */
const normalizers: Readonly<Record<string, (text: string) => string>> = {
  json: (text) => JSON.stringify(JSON.parse(text), null, 2),
  text: (text) => text,
  http: (text) =>
    text
      .replaceAll("\r", "")
      .replaceAll(/^(Date|Connection|Keep-Alive): .*\n/gm, "")
      .trim()
}

const blocks = readCodeBlocks(path)
const isExample = ({ language }: CodeBlock): boolean => language in commands
const examples = blocks.flatMap((block, i) => {
  const next = blocks[i + 1]
  return isExample(block)
    ? [
        {
          ...block,
          language: block.language as Language,
          shown: next !== undefined && next.language in normalizers ? next : undefined
        }
      ]
    : []
})

const openApi = makeOpenApi("/")
const endpointPaths = Object.keys(openApi.paths).filter((path) => path.startsWith("/api/v1/"))

describe(path, () => {
  it.each(examples)(
    "the $language example at line $line of docs/http-api.md succeeds and prints the documented output",
    async ({ language, code, shown }) => {
      const printed = await runExample(language, code)
      if (shown === undefined) return
      const normalize = normalizers[shown.language]!
      expect(normalize(printed)).toBe(normalize(shown.code))
    }
  )

  it("every code block of docs/http-api.md is an example, the output of the preceding example, or the 429 response", () => {
    const others = blocks.filter((block, i) => {
      const previous = blocks[i - 1]
      const isOutput = block.language in normalizers && previous !== undefined && isExample(previous)
      return !isExample(block) && !isOutput
    })
    expect(others.map(({ code }) => code.split("\n")[0])).toEqual(["HTTP/1.1 429 Too Many Requests"])
    expect(new Set(examples.map(({ language }) => language))).toEqual(new Set(["bash", "ts", "python"]))
  })

  it("the 429 in docs/http-api.md is the response to a request over the limit of a key", () => {
    const response = withCommonHeaders(
      toErrorResponse(RateLimited("key", defaultRateLimits.perKey, 18_000)),
      "order-4711"
    )
    const headers = toHeaderPairs(response).map(([name, value]) => `${name}: ${value}`)
    const shown = blocks.find(({ code }) => code.startsWith("HTTP/1.1 429"))!
    expect(shown.code.trim().split("\n")).toEqual([
      "HTTP/1.1 429 Too Many Requests",
      ...headers,
      "",
      Buffer.from(response.body).toString()
    ])
  })

  describe("the examples of docs/http-api.md after a 429", () => {
    const retrying = examples.filter(({ code }) => /retry-after/i.test(code))

    it.each(retrying)(
      "after a 429, the $language example at line $line waits for Retry-After and tries again",
      async ({ language, code, shown }) => {
        const arrivals: Array<number> = []
        // The proxy rejects the first request and forwards all later requests.
        const proxy = createServer(async (request, response) => {
          arrivals.push(performance.now())
          if (arrivals.length === 1) return response.writeHead(429, { "retry-after": "1" }).end("{}")
          const { authorization } = request.headers
          const upstream = await fetch(service().url + request.url, {
            headers: { authorization: authorization! }
          })
          response.writeHead(upstream.status).end(await upstream.text())
        })
        const port = await resources.acquire(listenOnFreePort(proxy))
        expect(await runExample(language, code, `http://127.0.0.1:${port}`)).toBe(shown!.code)
        expect(arrivals).toHaveLength(2)
        expect(arrivals[1]! - arrivals[0]!).toBeGreaterThanOrEqual(1_000)
      }
    )
  })

  const toCode = (text: string): string => `\`${text}\``

  it("docs/http-api.md has a section for each error code, with a row for each error of the code", () => {
    const byCode = Map.groupBy(Object.values(errors), ({ code }) => code)
    for (const [code, specs] of byCode) {
      const rows = readTable(path, code)
      expect(rows.map(([status, message]) => [status, message])).toEqual(
        specs.map(({ status, message }) => [
          String(status),
          toCode(typeof message === "string" ? message : `page ${positiveIntRule}`)
        ])
      )
      for (const row of rows) expect(row.filter((cell) => cell !== "")).toHaveLength(4)
    }
  })

  it("the table of rate limits in docs/http-api.md has the default limits of the service", () => {
    const rows = readTable(path, "Rate limits").slice(0, 2)
    expect(rows.map(([scope, requests]) => [scope, requests])).toEqual([
      ["`key`", String(defaultRateLimits.perKey)],
      ["`process`", String(defaultRateLimits.perProcess)]
    ])
  })

  /** Returns the texts in code format in the cells of a table. */
  const findCodes = (cells: ReadonlyArray<string>): ReadonlyArray<string> =>
    cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(({ 1: code }) => code!))

  it("the tables in docs/http-api.md list all endpoints and other paths of the service, and all query parameters of the list of prompts", () => {
    expect(findCodes(readTable(path, "Endpoints").map(([path]) => path!))).toEqual(endpointPaths)
    const others = findCodes(readTable(path, "Other paths").flat())
    expect(others.toSorted()).toEqual([...operationalPaths].toSorted())
    const parameters = openApi.paths["/api/v1/prompts"]!.get!.parameters
    expect(findCodes(readTable(path, "List prompts").map(([name]) => name!))).toEqual(
      parameters.flatMap((parameter) => (parameter.in === "query" ? [parameter.name] : []))
    )
  })

  it.each([
    ["a prompt", "Prompt", "PromptSummary"],
    ["resolved content", "ResolvedPrompt", "ResolvedPrompt"],
    ["a version", "Version", "VersionSummary"]
  ])(
    "the table of the fields of %s has the fields of the schema %s, and marks the fields of the schema %s",
    (name, resource, summary) => {
      const listFields = (schema: string) =>
        Object.keys((openApi.components.schemas[schema] as { readonly properties: object }).properties)
      const rows = readTable(path, `Fields of ${name}`)
      expect(findCodes(rows.map(([name]) => name!))).toEqual(listFields(resource))
      const marked = rows.filter(([, , inLists]) => inLists !== "no")
      expect(findCodes(marked.map(([name]) => name!))).toEqual(listFields(summary))
    }
  )
})
