import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** A part of a temporary file, in bytes. */
export interface FileSection {
  readonly position: number
  readonly length: number
}

/** A temporary file that only this process can read and that disappears with the process. */
export interface TemporaryFile {
  /** Appends the bytes of several arrays as one section. The first section creates the file. */
  readonly append: (arrays: ReadonlyArray<Uint8Array>) => Effect.Effect<FileSection>
  /** Returns the bytes of a section. The next operation invalidates them. */
  readonly read: (section: FileSection) => Effect.Effect<Uint8Array>
}

/** Opens a file and removes its name at once. */
const openUnnamedFile = async (): Promise<FileHandle> => {
  const directory = await mkdtemp(join(tmpdir(), "import-"))
  try {
    return await open(join(directory, "rows"), "wx+", 0o600)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const readBytes = async (file: FileHandle, position: number, bytes: Uint8Array): Promise<void> => {
  for (let done = 0; done < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, position + done)
    if (bytesRead === 0) throw new Error("The temporary file of the import ended early")
    done += bytesRead
  }
}

/** A temporary file that is closed with the scope. */
export const makeTemporaryFile: Effect.Effect<TemporaryFile, never, Scope.Scope> = Effect.gen(function* () {
  let file: FileHandle | undefined
  let end = 0
  // The memory of all sections: a new array for each would start many garbage collections.
  let memory = Buffer.alloc(0)
  const reserve = (length: number): Buffer => {
    if (memory.length < length) memory = Buffer.allocUnsafe(2 * length)
    return memory.subarray(0, length)
  }
  yield* Effect.addFinalizer(() => Effect.promise(async () => file?.close()))
  return {
    append: (arrays) =>
      Effect.promise(async () => {
        file ??= await openUnnamedFile()
        const bytes = reserve(arrays.reduce((sum, { length }) => sum + length, 0))
        let length = 0
        for (const array of arrays) {
          bytes.set(array, length)
          length += array.length
        }
        await file.appendFile(bytes)
        const section = { position: end, length }
        end += length
        return section
      }),
    read: ({ position, length }) =>
      Effect.promise(async () => {
        if (file === undefined) throw new Error("The temporary file of the import does not exist")
        const bytes = reserve(length)
        await readBytes(file, position, bytes)
        return bytes
      })
  }
})
