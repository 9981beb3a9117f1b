import type { ClientOptions, FetchInit, Live, LiveOptions, PromptSelection } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import { flush, type Request, awaitValue, settle } from "./support.ts"

/** The names of prompts. */
export const toNames = (count: number) => Array.from({ length: count }, (_, index) => `prompt-${index}`)

type Fault = (request: Request) => Response | Promise<Response> | undefined

/** A service with prompts, and a client. A fault may respond in place of the service. */
export const makeFaultyService = (count: number, options: ClientOptions = {}) => {
  const prompts = toNames(count).map((name, index) => ({ id: `p${index}`, name, content: `Text ${index}` }))
  const service = new FakeService({ prompts })
  const state: { fault?: Fault | undefined; sent: number } = { sent: 0 }
  const fetch = async (url: string, init: FetchInit) => {
    state.sent++
    return (await state.fault?.({ url, ...init })) ?? service.fetch(url, init)
  }
  const client = service.connect(options).withOptions({ fetch })
  const live = async (selection: PromptSelection, call?: LiveOptions): Promise<Live> => {
    const live = await awaitValue(client.live(selection, call))
    await flush()
    return live
  }
  /** Reads a prompt. Returns its text and the source of the text, or the name of the error. */
  const read = async (prompt: string) => {
    const outcome = await settle(client.prompts.getResolved(prompt))
    if ("error" in outcome) return (outcome.error as Error).name
    const { data, source } = outcome.value
    return `${data.resolved_content} (${source})`
  }
  return { service, client, live, read, state }
}

/** Returns how many prompts a request asks for. */
export const countRequested = (url: string): number => {
  const query = new URL(url, "http://host").searchParams
  return Number(query.get("per_page") ?? query.getAll("prompt").length)
}
