import { type ClientOptions } from "../src/index.ts"
import { jsonResponse, makeScriptedClient, type Responder, settle, toId } from "./support.ts"

export const cache = { ttl: 1_000, maxStale: 9_000, maxEntries: 3 }

export const ok = (title: string, etag = `"${title}"`) => jsonResponse(200, { data: { title } }, { etag })
const notModified = (etag: string) => new Response(null, { status: 304, headers: { etag } })

/** Responds 200 with a title and its ETag, or 304 if the request names that ETag. */
export const revalidatable =
  (title: string): Responder =>
  ({ headers }) =>
    headers["if-none-match"] === `"${title}"` ? notModified(`"${title}"`) : ok(title)

export const makeCachingClient = (
  responders: ReadonlyArray<Responder>,
  options: Partial<ClientOptions> = {}
) => {
  const { client, requests } = makeScriptedClient(responders, { cache, ...options })
  /** Reads a prompt and returns its title, its source and the duration of the call. */
  const read = async (id = "p", call = {}) => {
    const outcome = await settle(client.prompts.get(toId(id), call))
    if ("error" in outcome) throw outcome.error
    return [outcome.value.data.title, outcome.value.source, outcome.took]
  }
  const sentEtags = () => requests.map(({ headers }) => headers["if-none-match"])
  return { client, requests, read, sentEtags }
}
