import type { ProtocolError } from "@modelcontextprotocol/server"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { Caller } from "../../../application/Admission.ts"
import { Prompts, ReadGate } from "../../../application/Prompts.ts"
import type { NamedPrompt } from "../../../application/ports/PromptRepo.ts"
import { fillSlots, findSlots, ResolvedTooLarge } from "../../../domain/Resolution.ts"
import { type ApiError, errors } from "../contract/Errors.ts"
import { type CallError, makeInvalidParams, shorten } from "./CallErrors.ts"

const pageSize = 20
/** Maximum number of prompts of a page that are resolved at the same time. */
const concurrency = 2
/** Maximum number of slots of a prompt. A prompt with more slots cannot be read through MCP. */
const maxSlots = 1_000
const tooManySlots = makeInvalidParams(`The prompt has more than ${maxSlots} slots`, "RESOLVED_TOO_LARGE")
/** Matches a cursor, which is the number of a page. */
const pageNumberPattern = /^[1-9]\d{0,6}$/
const wrongCursor = makeInvalidParams("cursor must be the nextCursor of a page")

/** The parameters or the result of a call, or the arguments of a prompt. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Returns an error if a slot has no argument, if an argument is not a string, or if an argument belongs to no slot. */
const findArgumentProblem = (slots: ReadonlySet<string>, values: JsonObject): ProtocolError | undefined => {
  const wrong = [...slots].find((slot) => typeof values[slot] !== "string")
  if (wrong !== undefined) return makeInvalidParams(`Missing argument, or not a string: ${shorten(wrong)}`)
  const unknown = Object.keys(values).find((name) => !slots.has(name))
  return unknown === undefined ? undefined : makeInvalidParams(`Unknown argument: ${shorten(unknown)}`)
}

/** Returns true for the error of a prompt that exists but cannot be read, such as `ResolvedTooLarge`. */
const isUnreadable = ({ _tag }: ApiError): boolean =>
  errors[_tag].subject === "workspace" && _tag !== "PromptNotFound"

export const makeText = (text: string) => ({ type: "text", text })

/** Makes `list`, which reads a page of prompts, and `get`, which reads a prompt and fills its slots with arguments. */
export const makePromptCatalog = Effect.gen(function* () {
  const prompts = yield* Prompts
  const gate = yield* ReadGate

  const resolve = (caller: Caller, prompt: string) =>
    Effect.flatMap(prompts.getResolved(caller, prompt), (resolved) =>
      gate.runStep(resolved.resolved_content.length, () => ({
        ...resolved,
        slots: findSlots(resolved.resolved_content, maxSlots)
      }))
    )

  /**
   * Returns the list entry of a prompt. The entry of an unreadable prompt has no arguments. A deleted prompt has no
   * entry.
   */
  const listPrompt = Effect.fnUntraced(
    function* (caller: Caller, { id, name, title, description }: NamedPrompt) {
      const unreadable = Effect.succeed({ slots: new Set<string>() })
      const { slots } = yield* Effect.catchIf(resolve(caller, id), isUnreadable, () => unreadable)
      const names = slots.size > maxSlots ? [] : [...slots]
      const args = names.map((slot) => ({ name: slot, required: true }))
      return [{ name, title, description: description || undefined, arguments: args }]
    },
    Effect.catchTag("PromptNotFound", () => Effect.succeed([]))
  )

  const list = Effect.fnUntraced(function* (caller: Caller, { cursor = "1" }: JsonObject) {
    if (typeof cursor !== "string" || !pageNumberPattern.test(cursor)) return yield* Effect.fail(wrongCursor)
    const page = Number(cursor)
    const items = yield* prompts.listNamed(caller, { page, per_page: pageSize })
    const listed = yield* Effect.forEach(items, (item) => listPrompt(caller, item), { concurrency })
    return { prompts: listed.flat(), nextCursor: items.length === pageSize ? String(page + 1) : undefined }
  })

  const get = Effect.fnUntraced(function* (caller: Caller, { name, arguments: values = {} }: JsonObject) {
    if (typeof name !== "string") return yield* Effect.fail(makeInvalidParams("name must be a string"))
    if (!Predicate.isObject(values))
      return yield* Effect.fail(makeInvalidParams("arguments must be an object"))
    const { id, prompt_type, resolved_content, slots } = yield* resolve(caller, name)
    const problem = slots.size > maxSlots ? tooManySlots : findArgumentProblem(slots, values)
    const text = problem ?? fillSlots(resolved_content, values as Readonly<Record<string, string>>)
    if (typeof text !== "string") return yield* Effect.fail<CallError>(text ?? ResolvedTooLarge(id))
    // The protocol has only the roles `user` and `assistant`.
    return { role: prompt_type === "assistant" ? "assistant" : "user", content: makeText(text) }
  })

  return { list, get }
})
