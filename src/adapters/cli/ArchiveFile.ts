import { createReadStream, createWriteStream } from "node:fs"
import { mkdtemp, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import Tokenizer from "@streamparser/json/tokenizer.js"
import TokenParser from "@streamparser/json/tokenparser.js"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { notJson } from "../../application/Administration.ts"
import { archiveLists, type BadArchive, type RawPart } from "../../application/Archive.ts"
import { parseNumber } from "../../domain/Json.ts"
import { CliFailure } from "./CliFailure.ts"

/** Tokens of JSON, with exact numbers. */
class ExactTokenizer extends Tokenizer {
  override parseNumber(text: string): number {
    // An exact number is an object, which the parser takes as the value that it is.
    return parseNumber(text) as number
  }
}

/** Reads JSON as it comes: gives the values that each chunk completes, and throws where it is no JSON. */
const makeReader = () => {
  let values: Array<RawPart> = []
  let fault: Error | undefined
  let whole = false
  const tokenizer = new ExactTokenizer({ stringBufferSize: 64 * 1024 })
  const parser = new TokenParser({ paths: ["$", "$.*", ...archiveLists.map((list) => `$.${list}.*`)] })
  tokenizer.onToken = parser.write.bind(parser)
  tokenizer.onEnd = () => {
    if (!parser.isEnded) parser.end()
  }
  parser.onEnd = () => {
    if (!tokenizer.isEnded) tokenizer.end()
  }
  parser.onError = tokenizer.error.bind(tokenizer)
  parser.onValue = ({ value, key, parent, stack }) => {
    const list = stack[1]?.key
    if (stack.length === 0) {
      whole = true
      values.push({ path: [], value })
    } else if (stack.length === 1 && typeof key === "string") {
      values.push({ path: [key], value })
      // So that no more of the file is held than what is read.
      delete (parent as Record<string, unknown>)[key]
    } else if (stack.length === 2 && Array.isArray(parent)) {
      values.push({ path: [list as never, key as number], value })
      parent.length = 0
    }
  }
  tokenizer.onError = (error) => {
    fault ??= error
  }
  const taken = (): ReadonlyArray<RawPart> => {
    if (fault !== undefined) throw fault
    const all = values
    values = []
    return all
  }
  return {
    write: (chunk: Uint8Array): ReadonlyArray<RawPart> => {
      tokenizer.write(chunk)
      return taken()
    },
    end: (): ReadonlyArray<RawPart> => {
      if (!tokenizer.isEnded || !parser.isEnded) tokenizer.end()
      if (!whole) fault ??= new Error("it ends too early")
      return taken()
    }
  }
}

class NotJson extends Error {
  constructor(cause: unknown) {
    super(undefined, { cause })
  }
}

async function* values(
  chunks: AsyncIterable<Uint8Array>,
  onBytes: (count: number) => void
): AsyncGenerator<ReadonlyArray<RawPart>> {
  const reader = makeReader()
  const utf8 = new TextDecoder("utf-8", { fatal: true })
  const orNotJson = <A>(read: () => A): A => {
    try {
      return read()
    } catch (error) {
      throw new NotJson(error)
    }
  }
  for await (const chunk of chunks) {
    onBytes(chunk.length)
    yield orNotJson(() => {
      utf8.decode(chunk, { stream: true })
      return reader.write(chunk)
    })
  }
  yield orNotJson(() => {
    utf8.decode()
    return reader.end()
  })
}

const cantRead = (file: string, error: unknown) =>
  new CliFailure({ message: `can't read ${file}: ${(error as Error).message}` })

/** The values of an archive's file, as they come; `onBytes` hears how much was read. */
export const readArchiveFile = (
  file: string,
  onBytes: (count: number) => void
): Stream.Stream<RawPart, BadArchive | CliFailure> =>
  Stream.suspend(() =>
    Stream.fromAsyncIterable(
      values(createReadStream(file, { highWaterMark: 256 * 1024 }), onBytes),
      (error) => (error instanceof NotJson ? notJson(error.cause) : cantRead(file, error))
    )
  ).pipe(Stream.flattenIterable)

/** A file and its size in bytes. */
export interface SizedFile {
  readonly path: string
  readonly size: number
}

/**
 * A file to import, or all of what comes from a pipe, or from standard input for `-`, in a file that goes with the
 * scope: no transaction waits for whoever writes it.
 */
export const settle = Effect.fnUntraced(function* (file: string) {
  const attempt = <A>(run: () => Promise<A>) =>
    Effect.tryPromise({ try: run, catch: (error) => cantRead(file, error) })
  if (file !== "-") {
    const info = yield* attempt(() => stat(file))
    if (info.isFile()) return { path: file, size: info.size } satisfies SizedFile
  }
  const directory = yield* Effect.acquireRelease(
    attempt(() => mkdtemp(join(tmpdir(), "import-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
  const path = join(directory, "archive")
  const source = file === "-" ? process.stdin : createReadStream(file)
  yield* attempt(() => pipeline(source, createWriteStream(path, { mode: 0o600 })))
  return { path, size: (yield* attempt(() => stat(path))).size } satisfies SizedFile
})
