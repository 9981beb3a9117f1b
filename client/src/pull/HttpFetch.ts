import type { IncomingMessage } from "node:http"
import type { Fetch } from "../Transport.ts"

/**
 * Does what `fetch` does, except that it does not follow redirects and resolves with the whole body. For thousands of
 * requests, the `fetch` of Node takes 60 MiB more memory.
 */
export const httpFetch: Fetch = async (url, { headers, signal }) => {
  const { get } = url.startsWith("https:") ? await import("node:https") : await import("node:http")
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = {
      headers: { ...headers, "user-agent": "prompt-retrieval-client" },
      signal: signal as AbortSignal
    }
    get(url, options, resolve).on("error", reject)
  })
  let body = ""
  for await (const chunk of response.setEncoding("utf8")) body += chunk
  return {
    status: response.statusCode!,
    headers: { get: (name) => response.headers[name.toLowerCase()]?.toString() ?? null },
    body: null,
    text: async () => body
  }
}
