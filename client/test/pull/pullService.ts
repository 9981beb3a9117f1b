import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import { join } from "node:path"
import { expect, onTestFinished } from "vitest"
import { newId } from "../../../test/support/archives.ts"
import type { PromptBundle } from "../../src/index.ts"
import { FakeService } from "../../src/testing.ts"
import { serveFake } from "../serveFake.ts"
import { key } from "../support.ts"

const main = join(import.meta.dirname, "../../src/pull/main.ts")
export const bundleFile = "prompts.bundle.json"
export const typesFile = "prompts.ts"

export const agent = {
  id: newId<string>(),
  name: "support-agent",
  title: "Support agent",
  prompt_type: "system",
  content: "You are a support agent of {{shop}}.\nBe brief.\n\nWrite for {{reader}}.",
  fragment_count: 1,
  version: 3
}
export const template = {
  id: newId<string>(),
  name: "announcement",
  title: "Announcement",
  prompt_type: "template",
  content: "{{ product }} is here"
}
export const others = Array.from({ length: 230 }, (_, index) => ({
  id: newId<string>(),
  name: `prompt-${index}`,
  title: `Prompt ${index}`,
  prompt_type: "user",
  content: `Content ${index}`
}))

export const apiKey = key

/**
 * Starts a service in memory until the end of the current test, with 232 prompts or the given prompts. `fault` may
 * respond in place of the service.
 */
export const startPullService = async (
  prompts: ConstructorParameters<typeof FakeService>[0] = { prompts: [agent, template, ...others] },
  fault?: (request: IncomingMessage, response: ServerResponse) => boolean
) => {
  const service = new FakeService(prompts)
  const server = await serveFake(service, fault)
  onTestFinished(server.close)
  /** Runs `pull` in a separate process, with the URL and the key of the service unless `env` replaces them. */
  const pull = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
    const child: ChildProcess = spawn(process.execPath, [main, "pull", ...args], {
      env: {
        PATH: process.env.PATH,
        PROMPT_RETRIEVAL_KEY: apiKey,
        PROMPT_RETRIEVAL_URL: server.url,
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
  return { service, pull, url: server.url }
}

export const readText = (directory: string, name: string) => readFileSync(join(directory, name), "utf8")
export const readBundle = (directory: string): PromptBundle => JSON.parse(readText(directory, bundleFile))
export const readBoth = (directory: string) => [
  readText(directory, bundleFile),
  readText(directory, typesFile)
]
