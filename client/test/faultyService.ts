import type { ClientOptions, FetchInit, LiveOptions, PromptSelection } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import { awaitValue, flush, type Request, readText } from "./support.ts"

/** Returns the names of `count` prompts. */
export const toNames = (count: number) => Array.from({ length: count }, (_, index) => `prompt-${index}`)

type Fault = (request: Request) => Response | Promise<Response> | undefined

/** Makes a service with prompts, and a client. A fault can respond in place of the service. */
export const makeFaultyService = (count: number, options: ClientOptions = {}) => {
  const prompts = toNames(count).map((name, index) => ({ id: `p${index}`, name, content: `Text ${index}` }))
  const service = new FakeService({ prompts })
  const state: { fault?: Fault | undefined; sent: number } = { sent: 0 }
  const fetch = async (url: string, init: FetchInit) => {
    state.sent++
    return (await state.fault?.({ url, ...init })) ?? service.fetch(url, init)
  }
  const client = service.connect(options).withOptions({ fetch })
  const live = async (selection: PromptSelection, call?: LiveOptions) => {
    const live = await awaitValue(client.live(selection, call))
    await flush()
    return live
  }
  return { service, client, live, read: (prompt: string) => readText(client, prompt), state }
}

/** Returns how many prompts a request asks for. */
export const countRequested = (url: string): number => {
  const query = new URL(url, "http://host").searchParams
  return Number(query.get("per_page") ?? query.getAll("prompt").length)
}
