/** The part of Node's global `process` that the client uses. Browsers have none. */
interface ProcessLike {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> }
}

/**
 * Returns an environment variable, or `undefined` if it is empty, not set or not readable: Deno throws without the
 * permission to read it.
 */
export const readVariable = (name: string): string | undefined => {
  try {
    return (globalThis as ProcessLike).process?.env?.[name] || undefined
  } catch {
    return undefined
  }
}
