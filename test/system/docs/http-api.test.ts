import { execFile, execSync } from "node:child_process"
import { symlinkSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import {
  toErrorResponse,
  toHeaderPairs,
  withCommonHeaders
} from "../../../src/adapters/inbound/http/HttpMessage.ts"
import { defaultRateLimits } from "../../../src/application/Admission.ts"
import { RateLimited } from "../../../src/domain/RateLimit.ts"
import { startDemoApi } from "../../api/startApi.ts"
import { type CodeBlock, readCodeBlocks } from "../../docs/markdown.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const path = "docs/http-api.md"
const exec = promisify(execFile)

/** A PATH on which curl is the only program. */
const curlPath = makeTestDirectory("http-api-")
symlinkSync(execSync("command -v curl", { encoding: "utf8" }).trim(), join(curlPath, "curl"))

const { service, key: apiKey } = startDemoApi()

/** Normalizes the output of an example and the documented output, so that both texts can be compared. */
const normalizers: Readonly<Record<string, (text: string) => string>> = {
  json: (text) => JSON.stringify(JSON.parse(text), null, 2),
  http: (text) =>
    text
      .replaceAll("\r", "")
      .replaceAll(/^(Date|Connection|Keep-Alive): .*\n/gm, "")
      .trim()
}

/** The code blocks, each with the preceding block. */
const blocks = readCodeBlocks(path).map((block, index, all) => ({ ...block, previous: all[index - 1] }))
const isExample = (block?: CodeBlock): boolean => block?.language === "bash"
const isOutput = ({ language, previous }: (typeof blocks)[number]): boolean =>
  language in normalizers && isExample(previous)

it.each(blocks.filter(isExample))(
  "the example at line $line of docs/http-api.md succeeds and prints the documented output",
  async (example) => {
    const { stdout } = await exec("/bin/bash", ["-euc", example.code], {
      env: { PATH: curlPath, PROMPT_RETRIEVAL_URL: service().url, PROMPT_RETRIEVAL_KEY: apiKey }
    })
    const shown = blocks.find((block) => isOutput(block) && block.previous!.line === example.line)
    if (shown === undefined) return
    const normalize = normalizers[shown.language]!
    expect(normalize(stdout)).toBe(normalize(shown.code))
  }
)

it("every code block of docs/http-api.md is an example, the output of the preceding example, or the 429 response", () => {
  const others = blocks.filter((block) => !isExample(block) && !isOutput(block))
  expect(others.map(({ code }) => code.split("\n")[0])).toEqual(["HTTP/1.1 429 Too Many Requests"])
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
