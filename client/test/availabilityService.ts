import { type ClientOptions, type ResolvedOptions } from "../src/index.ts"
import { makeBundle } from "./makeBundle.ts"
import { jsonResponse, makeScriptedClient, type Responder, settle } from "./support.ts"

export const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"
export const otherId = "00000000-0000-4000-8000-000000000000"
export const bundle = makeBundle([{ id, content: "Bundled {{shop}}" }])

export const respondWithText =
  (text: string, headers: Record<string, string> = {}): Responder =>
  () =>
    jsonResponse(200, { data: { id, resolved_content: text } }, headers)

/** Makes a service that gives every request the response that the test set last. */
export const makeService = (options: Partial<ClientOptions> = {}) => {
  let respond: Responder = respondWithText("From the service")
  const scripted = makeScriptedClient([(request) => respond(request)], {
    maxRetries: 0,
    timeout: 1_000,
    ...options
  })
  const read = async (call: ResolvedOptions = {}, promptId = id) => {
    const outcome = await settle(scripted.client.prompts.getResolved(promptId, call))
    if ("error" in outcome) throw outcome.error
    return outcome.value
  }
  /** Reads a prompt. Returns its text and the source of the text. */
  const readText = async (call?: ResolvedOptions, promptId?: string) => {
    const { data, source } = await read(call, promptId)
    return [data.resolved_content, source]
  }
  return { ...scripted, read, readText, respondWith: (next: Responder) => (respond = next) }
}
