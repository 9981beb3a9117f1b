/** The part of Node's global `process` that the client uses. Browsers have no `process`. */
interface ProcessLike {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> }
}

/**
 * Returns an environment variable. Returns `undefined` if the variable is empty, not set or not readable: Deno throws
 * an error if the program has no permission to read the variable.
 */
export const readVariable = (name: string): string | undefined => {
  try {
    return (globalThis as ProcessLike).process?.env?.[name] || undefined
  } catch {
    return undefined
  }
}
