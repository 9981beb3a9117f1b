/** The message that Node's `fetch` publishes when it sends a request. */
interface SentRequest {
  readonly request: { readonly origin: string; readonly path: string }
  readonly socket: { unref(): void }
}

type Subscribe = (channel: string, listener: (message: SentRequest) => void) => void

/** The part of Node's global `process` and of its module `node:diagnostics_channel` that the client uses. */
interface Runtime {
  readonly process?: {
    readonly env?: Readonly<Record<string, string | undefined>>
    getBuiltinModule?(name: string): { subscribe: Subscribe; unsubscribe: Subscribe } | undefined
  }
}

/**
 * Returns an environment variable. Returns `undefined` if the variable is empty, not set or not readable. Deno throws
 * an error if the program has no permission to read the variable.
 */
export const readVariable = (name: string): string | undefined => {
  try {
    return (globalThis as Runtime).process?.env?.[name] || undefined
  } catch {
    return undefined
  }
}

/**
 * Runs a function that fetches a URL. In Node, the connection does not keep the process running once the request is
 * sent. In other runtimes, only runs the function.
 */
export const withoutHolding = async <A>(url: string, fetch: () => Promise<A>): Promise<A> => {
  const channels = (globalThis as Runtime).process?.getBuiltinModule?.("node:diagnostics_channel")
  const channel = "undici:client:sendHeaders"
  const unrefSocket = ({ request, socket }: SentRequest) => {
    if (request.origin + request.path === url) socket.unref()
  }
  channels?.subscribe(channel, unrefSocket)
  try {
    return await fetch()
  } finally {
    channels?.unsubscribe(channel, unrefSocket)
  }
}
