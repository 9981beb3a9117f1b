import type { Service } from "../services/startService.ts"

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary parts of results
export type Json = any

/** A response to a message: its status, its headers and its body, which is undefined if it is empty. */
export interface RpcResponse {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}

export const statelessMeta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {}
}

/** Returns the headers that a client of protocol version 2026-07-28 sends with a request. */
export const statelessHeaders = (method: string, name?: string): Record<string, string> => ({
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": method,
  ...(name === undefined ? {} : { "mcp-name": name })
})

/** Sends the text of a message to `/mcp`. */
export const post = async (
  { url }: Pick<Service, "url">,
  body: string,
  headers: Readonly<Record<string, string>>
): Promise<RpcResponse> => {
  const response = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers
    },
    body
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text)
  }
}

/** Calls a method as a client of protocol version 2025-11-25. */
export const call = (
  service: Pick<Service, "url">,
  key: string,
  method: string,
  params?: object,
  headers: Readonly<Record<string, string>> = {}
): Promise<RpcResponse> =>
  post(service, JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }), {
    authorization: `Bearer ${key}`,
    "mcp-protocol-version": "2025-11-25",
    ...headers
  })

/** Calls a method as a client of protocol version 2026-07-28. */
export const callStateless = (
  service: Pick<Service, "url">,
  key: string,
  method: string,
  params: Readonly<Record<string, unknown>> & { readonly name?: string } = {}
): Promise<RpcResponse> =>
  post(
    service,
    JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: statelessMeta } }),
    {
      authorization: `Bearer ${key}`,
      ...statelessHeaders(method, params.name)
    }
  )
