import type { ClientOptions, ResolvedOptions } from "../src/index.ts"
import { makeBundle } from "./pull/bundles.ts"
import { jsonResponse, makeScriptedClient, type Responder, awaitValue } from "./support.ts"

export const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"
export const bundle = makeBundle({
  id,
  name: "bundled",
  title: "Bundled",
  content: "Bundled {{shop}}",
  version: 7
})

export const respondWithText =
  (text: string, headers: Record<string, string> = {}): Responder =>
  () =>
    jsonResponse(200, { data: { id, resolved_content: text } }, headers)

/** Makes a service that gives every request the response that the test set last. */
export const makeService = (options: ClientOptions = {}) => {
  let respond: Responder = respondWithText("From the service")
  const scripted = makeScriptedClient([(request) => respond(request)], {
    maxRetries: 0,
    timeout: 1_000,
    ...options
  })
  const read = (call: ResolvedOptions = {}, prompt = id) =>
    awaitValue(scripted.client.prompts.getResolved(prompt, call))
  /** Reads a prompt. Returns its text and the source of the text. */
  const readText = async (call?: ResolvedOptions, prompt?: string) => {
    const { data, source } = await read(call, prompt)
    return `${data.resolved_content} (${source})`
  }
  return { ...scripted, read, readText, respondWith: (next: Responder) => (respond = next) }
}
