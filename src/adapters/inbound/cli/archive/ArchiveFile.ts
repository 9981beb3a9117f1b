import { createReadStream, createWriteStream } from "node:fs"
import { stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import Tokenizer from "@streamparser/json/tokenizer.js"
import TokenParser from "@streamparser/json/tokenparser.js"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isWorkspaceList, type RawPart } from "../../../../application/transfer/RawPart.ts"
import { workspaceLists } from "../../../../domain/workspace/WorkspaceParts.ts"
import { InvalidContent } from "../../../../domain/workspace/Problem.ts"
import { type CommandError, makeReadError } from "../output/CommandError.ts"
import { makeTemporaryDirectory } from "../TemporaryDirectory.ts"

/** Splits JSON into tokens. Strings keep every U+FEFF. */
class ArchiveTokenizer extends Tokenizer {
  constructor() {
    super({ stringBufferSize: 64 * 1024 })
    // The library's own decoder deletes U+FEFF at the start of every piece of a string.
    const { bufferedString } = this as unknown as { bufferedString: { decoder: unknown } }
    bufferedString.decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  }
}

/**
 * Parses JSON chunk by chunk. Each call of `write` or `end` returns the parts that this call completes. Throws if the
 * text is not JSON.
 */
const makePartReader = () => {
  let parts: Array<RawPart> = []
  let syntaxError: Error | undefined
  let sawRoot = false
  const tokenizer = new ArchiveTokenizer()
  const parser = new TokenParser({ paths: ["$", "$.*", ...workspaceLists.map((list) => `$.${list}.*`)] })
  tokenizer.onToken = parser.write.bind(parser)
  tokenizer.onEnd = () => {
    if (!parser.isEnded) parser.end()
  }
  parser.onEnd = () => {
    if (!tokenizer.isEnded) tokenizer.end()
  }
  parser.onError = tokenizer.error.bind(tokenizer)
  tokenizer.onError = (error) => {
    syntaxError ??= error
  }
  // Each value is removed from its parent once the value is read, so that a whole archive is never in memory.
  parser.onValue = ({ value, key, parent, stack }) => {
    const list = stack[1]?.key
    if (stack.length === 0) {
      sawRoot = true
      parts.push({ path: [], value })
    } else if (stack.length === 1 && typeof key === "string") {
      parts.push({ path: [key], value })
      delete (parent as Record<string, unknown>)[key]
    } else if (
      stack.length === 2 &&
      typeof list === "string" &&
      isWorkspaceList(list) &&
      typeof key === "number" &&
      Array.isArray(parent)
    ) {
      parts.push({ path: [list, key], value })
      parent.length = 0
    }
  }
  const drain = (): ReadonlyArray<RawPart> => {
    if (syntaxError !== undefined) throw syntaxError
    const complete = parts
    parts = []
    return complete
  }
  return {
    write: (chunk: Uint8Array): ReadonlyArray<RawPart> => {
      tokenizer.write(chunk)
      return drain()
    },
    end: (): ReadonlyArray<RawPart> => {
      if (!tokenizer.isEnded || !parser.isEnded) tokenizer.end()
      if (!sawRoot) syntaxError ??= new Error("the document is incomplete")
      return drain()
    }
  }
}

const toInvalidFile = (message: string): InvalidContent => InvalidContent([{ path: "", message }])

const space = 0x20

/** Streams the parts of an archive file. Calls `onBytes` with the size of each chunk that was read. */
export const readArchiveFile = (
  file: string,
  onBytes: (count: number) => void
): Stream.Stream<RawPart, InvalidContent | CommandError> =>
  Stream.suspend(() => {
    const reader = makePartReader()
    const utf8 = new TextDecoder("utf-8", { fatal: true })
    let bytes = 0
    let isBlank = true
    const readChunk = (chunk: Uint8Array) =>
      Effect.try({
        try: () => {
          bytes += chunk.length
          isBlank &&= chunk.every((byte) => byte <= space)
          onBytes(chunk.length)
          utf8.decode(chunk, { stream: true })
          return reader.write(chunk)
        },
        catch: (error) => toInvalidFile(`is not a JSON document in UTF-8: ${(error as Error).message}`)
      })
    const readEnd = Effect.try({
      try: () => {
        utf8.decode()
        return reader.end()
      },
      catch: () => toInvalidFile(isBlank ? "is empty" : `is truncated at byte ${bytes}`)
    })
    const chunks: AsyncIterable<Uint8Array> = createReadStream(file)
    return Stream.fromAsyncIterable(chunks, (error) => makeReadError(file, error)).pipe(
      Stream.mapEffect(readChunk),
      Stream.concat(Stream.fromEffect(readEnd)),
      Stream.flattenIterable
    )
  })

interface SpooledFile {
  readonly path: string
  readonly size: number
}

/**
 * Returns the file itself if it is a regular file. If it is a pipe, or `-` for standard input, copies its data to a
 * temporary file, so that no transaction waits for a slow writer. The temporary file is removed when the scope closes.
 */
export const spoolToFile = Effect.fnUntraced(function* (file: string) {
  const toError = (error: unknown) => makeReadError(file, error)
  const attempt = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: toError })
  if (file !== "-") {
    const info = yield* attempt(() => stat(file))
    if (info.isFile()) return { path: file, size: info.size } satisfies SpooledFile
  }
  const directory = yield* makeTemporaryDirectory(join(tmpdir(), "import-"), toError)
  const path = join(directory, "archive")
  const source = file === "-" ? process.stdin : createReadStream(file)
  yield* attempt(() => pipeline(source, createWriteStream(path, { mode: 0o600 })))
  return { path, size: (yield* attempt(() => stat(path))).size } satisfies SpooledFile
})
