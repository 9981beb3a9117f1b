import { makeErrorClass } from "./ErrorClass.ts"
import { PromptClientError } from "./Errors.ts"
import type { ResolvedPrompt } from "./ResolvedPrompt.ts"
import type { UnknownJson } from "./transport/Envelopes.ts"

/** A prompt of a bundle, with the resolved content that the service returned to `pull`. */
export interface BundledPrompt
  extends Pick<ResolvedPrompt, "id" | "title" | "target_model" | "fragment_count"> {
  /** Name of the prompt in its workspace (docs/names.md). */
  readonly name: string
  readonly prompt_type: string
  /** Content of the prompt, followed by its fragments with their slots filled. */
  readonly content: string
  /** Version number of the prompt; absent if the service returned no version. */
  readonly version?: number | undefined
  /** Names of the slots left in `content`, without duplicates, in order of first occurrence. */
  readonly slots: ReadonlyArray<string>
  /** SHA-256 of the other fields, in hexadecimal digits. */
  readonly sha256: string
}

/**
 * The contents of `prompts.bundle.json`. The types are wide, so that the type of an imported JSON file is assignable to
 * this type.
 */
export interface PromptBundle {
  /** Always `prompt-retrieval-bundle`. */
  readonly format: string
  /** Always 1. */
  readonly formatVersion: number
  /** The prompts, ordered by name. */
  readonly prompts: ReadonlyArray<BundledPrompt>
  /** SHA-256 of the hashes of all prompts, in hexadecimal digits. */
  readonly sha256: string
}

export const bundleFormat = "prompt-retrieval-bundle"
export const bundleFormatVersion = 1

/** A value was rejected as a bundle, because the value is damaged, was edited by hand, or has the wrong form. */
export class BundleError extends makeErrorClass("BundleError", PromptClientError) {
  /** Id of the first prompt whose hash does not match; absent if the error concerns the whole bundle. */
  declare readonly promptId?: string
  constructor(message: string, promptId?: string) {
    super(message)
    if (promptId) this.promptId = promptId
  }
}

/** Returns the SHA-256 of a text in hexadecimal digits. */
const hash = async (text: string): Promise<string> => {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("")
}

/** The fields of a bundled prompt besides its content and its hash, in the order of the file and of the hashed text. */
export const bundledFields = [
  "id",
  "name",
  "title",
  "prompt_type",
  "target_model",
  "version",
  "fragment_count",
  "slots"
] as const satisfies ReadonlyArray<keyof BundledPrompt>

/** Returns true if the text fields of a resolved prompt are strings, and `fragment_count` is an exact integer. */
export const isResolvedPrompt = (prompt: UnknownJson): boolean =>
  Number.isSafeInteger(prompt.fragment_count) &&
  ["id", "title", "prompt_type", "target_model", "resolved_content"].every(
    (field) => typeof prompt[field] === "string"
  )

/**
 * Returns the text to hash for a prompt: the JSON of all fields except the content, a line feed, and the content. The
 * JSON contains no line feed, so different prompts have different texts. The content is not part of the JSON, because
 * encoding the content as JSON takes longer than hashing the content.
 */
export const serializePrompt = (prompt: Omit<BundledPrompt, "sha256">): string =>
  `${JSON.stringify(bundledFields.map((field) => prompt[field]))}\n${prompt.content}`

/** Returns the text to hash for a bundle. */
export const serializeHashes = (prompts: ReadonlyArray<Pick<BundledPrompt, "sha256">>): string =>
  prompts.map(({ sha256 }) => sha256).join("")

/**
 * Verifies the hashes of a bundle (the parsed JSON of `prompts.bundle.json`), and resolves to the bundle. Rejects with a
 * `BundleError` if a hash does not match. The error names the first prompt whose hash does not match the prompt's
 * fields. The hashes detect damage and edits by hand. They are not a signature, because any program can compute them.
 *
 * @example
 * ```ts
 * import { verifyBundle } from "@prompt-retrieval/client"
 *
 * const { prompts } = await verifyBundle(JSON.parse("…"))
 * const titles: Array<string> = prompts.map(({ title }) => title)
 * ```
 */
export const verifyBundle = async (value: unknown): Promise<PromptBundle> => {
  const bundle = value as PromptBundle
  const isKnown = bundle?.format === bundleFormat && bundle.formatVersion === bundleFormatVersion
  if (!isKnown || !Array.isArray(bundle.prompts)) {
    throw new BundleError("Not a prompt bundle of format version 1; run 'pull' again")
  }
  const { prompts, sha256 } = bundle
  for (const prompt of prompts) {
    // Only well-formed texts have unambiguous hashes, because UTF-8 cannot represent other texts.
    const isWellFormed = prompt?.content?.isWellFormed?.()
    if (isWellFormed && prompt.sha256 === (await hash(serializePrompt(prompt)))) continue
    throw new BundleError(`Hash mismatch in prompt ${prompt?.id} of the bundle; run 'pull' again`, prompt?.id)
  }
  if (sha256 !== (await hash(serializeHashes(prompts)))) {
    throw new BundleError("Hash mismatch in the bundle; run 'pull' again")
  }
  return bundle
}

/**
 * Makes a function that finds a prompt of a bundle by its name or its id. The first call verifies the bundle. Every call
 * rejects with a `BundleError` if a hash does not match.
 */
export const makeFindBundled = (bundle: PromptBundle) => {
  let verified: Promise<PromptBundle> | undefined
  return async (prompt: string): Promise<BundledPrompt | undefined> => {
    verified ??= verifyBundle(bundle)
    const { prompts } = await verified
    // As in the service, names are case-sensitive, and ids are not.
    return prompts.find(({ id, name }) => prompt === name || prompt.toLowerCase() === id)
  }
}
