import { createHash } from "node:crypto"
import {
  BundleError,
  type BundledPrompt,
  bundleFormat,
  bundleFormatVersion,
  hasContent,
  serializeHashes,
  serializePrompt,
  verifyBundle
} from "../Bundle.ts"

export const bundleFileName = "prompts.bundle.json"

/** Returns the SHA-256 of the concatenation of pieces, in hexadecimal digits. */
export const hashPieces = (pieces: Iterable<string | Uint8Array>): string => {
  const hash = createHash("sha256")
  for (const piece of pieces) hash.update(piece)
  return hash.digest("hex")
}

const hashPrompt = (prompt: Omit<BundledPrompt, "sha256">): string => hashPieces([serializePrompt(prompt)])

/** Adds its hash to a prompt. Replaces halves of surrogate pairs in the content, which UTF-8 cannot represent. */
export const sealPrompt = (fields: Omit<BundledPrompt, "sha256">): BundledPrompt => {
  const prompt = {
    ...fields,
    content: fields.content.toWellFormed(),
    slots: fields.slots.map((slot) => slot.toWellFormed())
  }
  return { ...prompt, sha256: hashPrompt(prompt) }
}

/** What is needed of a prompt to name its constant and to compare it. */
export type PromptIdentity = Pick<BundledPrompt, "id" | "title" | "slots" | "sha256">

/**
 * A prompt as the file contains it. The JSON has all fields, as bytes, which V8 keeps outside of its heap: thousands of
 * prompts make neither the heap nor the garbage collections large.
 */
export interface RenderedPrompt extends PromptIdentity {
  readonly json: Buffer
}

const blockSize = 2 ** 20
let block = Buffer.alloc(0)

/** Copies a text to the end of a large block of memory. Small blocks would waste a third of their space. */
const keepBytes = (text: string): Buffer => {
  const size = Buffer.byteLength(text)
  if (size > block.length) block = Buffer.allocUnsafeSlow(Math.max(size, blockSize))
  block.write(text)
  const bytes = block.subarray(0, size)
  block = block.subarray(size)
  return bytes
}

/** Returns the JSON of a prompt in the file, with its fields in a fixed order. */
const toJson = ({
  id,
  title,
  prompt_type,
  target_model,
  content,
  fragment_count,
  version,
  etag,
  slots,
  sha256
}: BundledPrompt): string => {
  const fields = {
    id,
    title,
    prompt_type,
    target_model,
    version,
    etag,
    fragment_count,
    sha256,
    slots,
    content
  }
  // JSON escapes line breaks, so no value contains one.
  return JSON.stringify(fields, null, 2).replaceAll("\n", "\n    ")
}

/** Returns copies of the texts: a slot may be a part of the content that keeps all of the content in memory. */
const copyIdentity = ({ id, title, slots, sha256 }: BundledPrompt): PromptIdentity =>
  JSON.parse(JSON.stringify({ id, title, slots, sha256 }))

export const renderPrompt = (prompt: BundledPrompt): RenderedPrompt => ({
  ...copyIdentity(prompt),
  json: keepBytes(toJson(prompt))
})

/** Returns all fields of a prompt. */
export const readFields = ({ json }: RenderedPrompt): BundledPrompt => JSON.parse(json.toString())

const renderHead = (sha256: string): string => {
  const head = JSON.stringify({ format: bundleFormat, formatVersion: bundleFormatVersion, sha256 }, null, 2)
  return `${head.slice(0, -2)},\n  "prompts": [`
}
const separator = ",\n    "
const renderEnd = (count: number): string => `${count === 0 ? "" : "\n  "}]\n}\n`

/** Renders `prompts.bundle.json` piece by piece. Equal prompts are rendered to equal bytes. */
export function* renderBundle(prompts: ReadonlyArray<RenderedPrompt>): Generator<string | Uint8Array> {
  yield renderHead(hashPieces([serializeHashes(prompts)]))
  for (const [index, { json }] of prompts.entries()) {
    yield index === 0 ? separator.slice(1) : separator
    yield json
  }
  yield renderEnd(prompts.length)
}

/** Yields the bytes of each prompt in a file that `renderBundle` rendered; of other files, anything. */
function* splitPrompts(file: Buffer): Generator<Buffer> {
  const [opening, closing] = ["\n    {", "\n    }"]
  for (let end = 0; ; ) {
    const start = file.indexOf(opening, end)
    end = file.indexOf(closing, start + opening.length)
    if (start === -1 || end === -1) return
    end += closing.length
    yield file.subarray(start + opening.length - 1, end)
  }
}

const parsePrompt = (json: Uint8Array): BundledPrompt | undefined => {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(json))
    return hasContent(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** What a comparison needs to know of a prompt. */
export type KnownPrompt = Pick<BundledPrompt, "id" | "sha256">

/** Returns the ids and hashes of the prompts in a file that `renderBundle` rendered. Verifies nothing. */
export const listKnownPrompts = (file: Buffer): ReadonlyArray<KnownPrompt> => {
  const known: Array<KnownPrompt> = []
  for (const json of splitPrompts(file)) {
    const prompt = parsePrompt(json)
    if (prompt !== undefined) known.push({ id: prompt.id, sha256: prompt.sha256 })
  }
  return known
}

/** Yields the bytes of a file without the CR of each CRLF, in pieces. */
export function* withUnixLineEndings(bytes: Buffer): Generator<Buffer> {
  let start = 0
  for (let end = bytes.indexOf("\r\n"); end !== -1; end = bytes.indexOf("\r\n", start)) {
    yield bytes.subarray(start, end)
    start = end + 1
  }
  yield bytes.subarray(start)
}

/** Returns the error for a file that `renderBundle` would render otherwise. */
const explainDifference = async (file: Buffer): Promise<BundleError> => {
  let value: unknown
  try {
    value = JSON.parse(file.toString())
  } catch {
    return new BundleError("The file is not JSON; run 'pull' again")
  }
  await verifyBundle(value)
  return new BundleError("The file was edited or formatted; exclude it from formatters and run 'pull' again")
}

/**
 * Verifies the bytes of `prompts.bundle.json`: the hashes, and that the file is exactly what `renderBundle` renders.
 * Line endings may be those of Windows. Rejects with a `BundleError`. Never has the fields of all prompts in memory.
 */
export const parseBundleFile = async (bytes: Buffer): Promise<ReadonlyArray<RenderedPrompt>> => {
  const file = bytes.includes("\r\n") ? Buffer.concat([...withUnixLineEndings(bytes)]) : bytes
  const prompts: Array<RenderedPrompt> = []
  for (const json of splitPrompts(file)) {
    const prompt = parsePrompt(json)
    if (prompt === undefined || prompt.sha256 !== hashPrompt(prompt)) throw await explainDifference(file)
    if (!json.equals(Buffer.from(toJson(prompt)))) throw await explainDifference(file)
    prompts.push({ ...copyIdentity(prompt), json })
  }
  let position = 0
  for (const piece of renderBundle(prompts)) {
    const expected = Buffer.from(piece)
    if (!file.subarray(position, position + expected.length).equals(expected))
      throw await explainDifference(file)
    position += expected.length
  }
  if (position !== file.length) throw await explainDifference(file)
  return prompts
}
