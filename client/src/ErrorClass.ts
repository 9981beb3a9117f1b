/** Base class of the client's errors. An invalid option or argument causes a `TypeError` or a `RangeError` instead. */
export class PromptClientError extends Error {
  override get name(): string {
    return "PromptClientError"
  }
}

/**
 * Makes a class whose errors have this `name`, even if a minifier changes the name of the class. TypeScript
 * distinguishes the classes by their names.
 */
export const makeErrorClass = <Name extends string, Args extends Array<unknown>, A extends PromptClientError>(
  name: Name,
  Base: new (...args: Args) => A
) =>
  class extends (Base as unknown as typeof PromptClientError) {
    override get name(): string {
      return name
    }
  } as unknown as new (
    ...args: Args
  ) => A & { readonly name: Name }
