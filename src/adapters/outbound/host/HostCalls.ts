import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { formatIssue } from "../../../application/formats/SchemaIssues.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { makeStateLog } from "../../../application/StateLog.ts"

/**
 * A function of a store of the host rejects with this error while the store cannot be reached: the request gets 503.
 * Any other error is unexpected: the request gets 500, and the error is logged.
 */
export class StoreUnavailableError extends Error {
  override readonly name = "StoreUnavailableError"
}

/** Returns the path of the first part that does not match its schema, never its value, which may be a prompt's text. */
const describeIssue = ({ issue }: Schema.SchemaError): string => {
  const [first] = formatIssue(issue).issues
  const path = (first?.path ?? []).map(String).join(".")
  return path === "" ? "the value" : path
}

/** Calls the functions of one store of the host, which `option` names in messages, and validates what they return. */
export class HostCalls {
  readonly #option: string
  readonly #stateLog: ReturnType<typeof makeStateLog>

  constructor(option: string) {
    this.#option = option
    this.#stateLog = makeStateLog({
      failed: `${option} unavailable; its requests get 503`,
      restored: `${option} restored`
    })
  }

  /** Runs a call. Fails while the store is unavailable, and logs when that begins and ends. */
  run(call: () => unknown): Effect.Effect<unknown, Unavailable> {
    return Effect.tryPromise({ try: async () => call(), catch: (error) => error }).pipe(
      Effect.tap(this.#stateLog.up),
      Effect.catch((error) =>
        error instanceof StoreUnavailableError
          ? Effect.andThen(this.#stateLog.down(error.message), Effect.fail(Unavailable))
          : Effect.die(error)
      )
    )
  }

  /** Makes a function that runs a call of `method` and decodes its result. A result that does not match is a defect. */
  makeReader<A>(method: string, schema: Schema.Decoder<A>) {
    const decode = this.#makeDecoder(method, schema)
    return (call: () => Promise<unknown>): Effect.Effect<A, Unavailable> =>
      Effect.flatMap(this.run(call), decode)
  }

  /** Like `makeReader`, but the function fails with `notFound` if the result is `undefined` or `null`. */
  makeFinder<A, E>(method: string, schema: Schema.Decoder<A>, notFound: E) {
    const decode = this.#makeDecoder(method, schema)
    return (call: () => Promise<unknown>): Effect.Effect<A, E | Unavailable> =>
      Effect.flatMap(
        this.run(call),
        (result): Effect.Effect<A, E> =>
          result === undefined || result === null ? Effect.fail(notFound) : decode(result)
      )
  }

  #makeDecoder<A>(method: string, schema: Schema.Decoder<A>) {
    const decode = Schema.decodeUnknownResult(schema)
    return (result: unknown): Effect.Effect<A> =>
      Result.match(decode(result), {
        onSuccess: (value) => Effect.succeed(value),
        onFailure: (error) =>
          Effect.die(new Error(`${this.#option}.${method} returned invalid data: ${describeIssue(error)}`))
      })
  }
}
