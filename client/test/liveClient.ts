import type { ClientOptions, FetchInit, Live, LiveOptions, PromptSelection } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import { flush, type Request, settle, toId } from "./support.ts"

export const ttl = 30_000
/** How long a request waits with this `ttl`, in milliseconds. */
export const wait = 25_000

export const toPrompts = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    id: toId(`p${index}`),
    name: `prompt-${index}`,
    content: `Text ${index}`
  }))

type Fault = (request: Request) => Response | Promise<Response> | undefined

/** A service with prompts, and a client. A fault may respond in place of the service. */
export const makeLiveClient = (count: number, options: ClientOptions = {}) => {
  const service = new FakeService({ prompts: toPrompts(count) })
  const state: { fault?: Fault | undefined; sent: number } = { sent: 0 }
  const fetch = async (url: string, init: FetchInit) => {
    state.sent++
    return (await state.fault?.({ url, ...init })) ?? service.fetch(url, init)
  }
  const client = service.connect(options).withOptions({ fetch })
  const live = async (selection: PromptSelection, call?: LiveOptions): Promise<Live> => {
    const outcome = await settle(client.live(selection, call))
    if ("error" in outcome) throw outcome.error
    await flush()
    return outcome.value
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
