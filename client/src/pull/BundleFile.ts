import { createHash } from "node:crypto"
import {
  type BundledPrompt,
  BundleError,
  bundledFields,
  bundleFormat,
  bundleFormatVersion,
  serializeHashes,
  serializePrompt,
  verifyBundle
} from "../Bundle.ts"

export const bundleFileName = "prompts.bundle.json"

const hash = (text: string): string => createHash("sha256").update(text).digest("hex")

/**
 * Returns the fields of a prompt and its hash, in the order of the file. Replaces lone surrogates, because UTF-8 cannot
 * represent them.
 */
export const sealPrompt = (prompt: Omit<BundledPrompt, "sha256">): BundledPrompt => {
  const { slots, content } = prompt
  const fields = { ...prompt, slots: slots.map((slot) => slot.toWellFormed()) }
  const sealed = {
    ...Object.fromEntries(bundledFields.map((field) => [field, fields[field]])),
    content: content.toWellFormed()
  } as BundledPrompt
  return { ...sealed, sha256: hash(serializePrompt(sealed)) }
}

/** Renders `prompts.bundle.json`. Equal prompts are rendered to equal texts. */
export const renderBundle = (prompts: ReadonlyArray<BundledPrompt>): string => {
  const sha256 = hash(serializeHashes(prompts))
  return `${JSON.stringify({ format: bundleFormat, formatVersion: bundleFormatVersion, sha256, prompts }, null, 2)}\n`
}

/**
 * Parses the text of `prompts.bundle.json`. Rejects with a `BundleError` if the text is not JSON, if a hash does not
 * match, or if `renderBundle` renders a different text.
 */
export const parseBundleFile = async (text: string): Promise<ReadonlyArray<BundledPrompt>> => {
  let bundle: unknown
  try {
    bundle = JSON.parse(text)
  } catch {
    throw new BundleError("The file is not JSON; run 'pull' again")
  }
  const { prompts } = await verifyBundle(bundle)
  if (renderBundle(prompts) === text) return prompts
  throw new BundleError("The file was edited or formatted; exclude it from formatters and run 'pull' again")
}
