import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import JSONParser from "@streamparser/json/jsonparser.js"
import * as Stream from "effect/Stream"
import { notJson } from "../../application/Administration.ts"
import { archiveLists, type BadArchive, type RawPart } from "../../application/Archive.ts"
import { CliFailure } from "./CliFailure.ts"

/** Reads JSON as it comes: gives the values that each chunk completes, and throws where it is no JSON. */
const makeReader = () => {
  let values: Array<RawPart> = []
  let fault: Error | undefined
  let whole = false
  const parser = new JSONParser({
    paths: ["$", "$.*", ...archiveLists.map((list) => `$.${list}.*`)],
    stringBufferSize: 64 * 1024
  })
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
  parser.onError = (error) => {
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
      parser.write(chunk)
      return taken()
    },
    end: (): ReadonlyArray<RawPart> => {
      if (!parser.isEnded) parser.end()
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

/** The values of an archive's file, or of standard input's for `-`, as they come; `onBytes` hears how much was read. */
export const readArchiveFile = (
  file: string,
  onBytes: (count: number) => void
): Stream.Stream<RawPart, BadArchive | CliFailure> =>
  Stream.suspend(() =>
    Stream.fromAsyncIterable(
      values(file === "-" ? process.stdin : createReadStream(file, { highWaterMark: 256 * 1024 }), onBytes),
      (error) =>
        error instanceof NotJson
          ? notJson(error.cause)
          : new CliFailure({ message: `can't read ${file}: ${(error as Error).message}` })
    )
  ).pipe(Stream.flattenIterable)

/** How long a file is, in bytes, where that can be known. */
export const sizeOf = async (file: string): Promise<number | undefined> => {
  if (file === "-") return undefined
  const info = await stat(file)
  return info.isFile() ? info.size : undefined
}
