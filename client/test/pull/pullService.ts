import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import { newId } from "../../../test/support/archives.ts"
import { run } from "../../../test/support/programs/packages.ts"
import { makeTestDirectory } from "../../../test/support/testDirectory.ts"
import type { PromptBundle } from "../../src/index.ts"
import { type FakePrompt, FakeService } from "../../src/testing.ts"
import { type Handler, serveFake } from "../serveFake.ts"
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
const template = { name: "announcement", prompt_type: "template", content: "{{ product }} is here" }
const others = Array.from({ length: 230 }, (_, index) => ({
  name: `prompt-${index}`,
  prompt_type: "user",
  content: `Content ${index}`
}))
export const prompts: ReadonlyArray<FakePrompt & { readonly name: string }> = [agent, template, ...others]

/**
 * Starts a service in memory until the end of the current test, and creates an empty directory for `pull`. `fault` can
 * respond in place of the service.
 */
export const startPullService = async (
  content: ReadonlyArray<FakePrompt> = [agent],
  fault?: Handler<boolean>
) => {
  const service = new FakeService({ prompts: content })
  const url = await serveFake(service, fault)
  const directory = makeTestDirectory("pull-")
  /** Runs `pull` in the directory, with the URL and the key of the service unless `env` replaces them. */
  const pull = async (args: ReadonlyArray<string> = [], env: Readonly<Record<string, string>> = {}) => {
    const variables = { PROMPT_RETRIEVAL_KEY: key, PROMPT_RETRIEVAL_URL: url, ...env }
    const result = await run(directory, process.execPath, [main, "pull", ...args], variables)
    expect(result.stdout + result.stderr).not.toContain(key)
    return result
  }
  const read = (name: string) => readFileSync(join(directory, name), "utf8")
  const write = (name: string, text: string) => writeFileSync(join(directory, name), text)
  const readBundle = (): PromptBundle => JSON.parse(read(bundleFile))
  return { service, pull, directory, read, write, readBundle, list: () => readdirSync(directory).toSorted() }
}
