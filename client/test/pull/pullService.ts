import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import { join } from "node:path"
import { expect, onTestFinished } from "vitest"
import { type Api, startApi } from "../../../test/api/startApi.ts"
import {
  archive,
  fragment,
  fragmentBinding,
  key,
  prompt,
  tag,
  user,
  workspace
} from "../../../test/support/archives.ts"
import { type PromptBundle } from "../../src/index.ts"
import { listen } from "../FaultyServer.ts"

const main = join(import.meta.dirname, "../../src/pull/main.ts")
export const bundleFile = "prompts.bundle.json"
export const typesFile = "prompts.ts"

const home = workspace()
const owner = user()
const ownKey = key(home.id, owner)
const production = tag("production")
const tone = fragment("Write as {{brand}} does, for {{reader}}.")
export const agent = prompt({
  title: "Support agent",
  current_content: "You are a support agent of {{shop}}.\nBe brief.\nBe kind.",
  current_version: 3,
  tags: [production.id],
  fragments: [fragmentBinding(tone, 1, { variable_overrides: { brand: "Acme" } })]
})
export const template = prompt({
  title: "Announcement",
  prompt_type: "template",
  current_content: "{{ product }} is here"
})
const archived = prompt({ title: "Old", is_archived: true })
export const others = Array.from({ length: 230 }, (_, index) =>
  prompt({ title: `Prompt ${index}`, current_content: `Content ${index}`, prompt_type: "user" })
)
export const prompts = [agent, template, archived, ...others]
let running: Api | undefined

/** Starts the service before the tests of the current file and stops the service after them. */
export const startPullService = (): void => {
  running = startApi([
    archive({
      workspace: home,
      users: [owner],
      api_keys: [ownKey.stored],
      tags: [production],
      fragments: [tone],
      prompts
    })
  ])
}

/** The service of the current test file. */
export const api: Pick<Api, "service" | "sql"> = {
  service: () => running!.service(),
  sql: (text, params) => running!.sql(text, params)
}

export const apiKey = ownKey.plaintext

/** Runs `pull` in a separate process, with the URL and the key of the service unless `env` replaces them. */
export const pull = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const child: ChildProcess = spawn(process.execPath, [main, "pull", ...args], {
    env: {
      PATH: process.env.PATH,
      PROMPT_RETRIEVAL_KEY: apiKey,
      PROMPT_RETRIEVAL_URL: api.service().url,
      ...env
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let [stdout, stderr] = ["", ""]
  child.stdout!.on("data", (chunk) => (stdout += chunk))
  child.stderr!.on("data", (chunk) => (stderr += chunk))
  const [code] = (await once(child, "close")) as [number]
  expect(stdout + stderr).not.toContain(apiKey)
  return { code, stdout, stderr }
}

export const readText = (directory: string, name: string) => readFileSync(join(directory, name), "utf8")
export const readBundle = (directory: string): PromptBundle => JSON.parse(readText(directory, bundleFile))
export const readBoth = (directory: string) => [
  readText(directory, bundleFile),
  readText(directory, typesFile)
]

/**
 * Starts a proxy in front of the service until the end of the current test. A handler may replace the responses of the
 * service.
 */
export const startProxy = async (
  handle: (request: IncomingMessage, response: ServerResponse) => boolean,
  changeHeaders: (headers: Headers) => void = () => {}
) => {
  const requests: Array<string> = []
  const server = await listen(async (request, response) => {
    requests.push(request.url!)
    if (handle(request, response)) return
    const { authorization } = request.headers
    const upstream = await fetch(api.service().url + request.url, {
      headers: { authorization: authorization! }
    })
    const headers = new Headers(upstream.headers)
    changeHeaders(headers)
    response.writeHead(upstream.status, Object.fromEntries(headers)).end(await upstream.text())
  })
  onTestFinished(server.close)
  return { requests, env: { PROMPT_RETRIEVAL_URL: server.url } }
}
