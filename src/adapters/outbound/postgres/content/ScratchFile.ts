import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** The position of a text in a scratch file, in bytes. */
export interface FileSection {
  readonly position: number
  readonly length: number
}

/** A temporary file that only this process can read and that disappears with the process. */
export interface ScratchFile {
  /** Appends a text. The file is created by the first text. */
  readonly append: (text: string) => Effect.Effect<FileSection>
  readonly read: (section: FileSection) => Effect.Effect<string>
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

const readSection = async (file: FileHandle, { position, length }: FileSection): Promise<string> => {
  const bytes = Buffer.allocUnsafe(length)
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done)
    if (bytesRead === 0) throw new Error("The scratch file of the import ended early")
    done += bytesRead
  }
  return bytes.toString()
}

/** A scratch file that is closed with the scope. */
export const makeScratchFile: Effect.Effect<ScratchFile, never, Scope.Scope> = Effect.gen(function* () {
  let file: FileHandle | undefined
  let end = 0
  yield* Effect.addFinalizer(() => Effect.promise(async () => file?.close()))
  return {
    append: (text) =>
      Effect.promise(async () => {
        file ??= await openUnnamedFile()
        const bytes = Buffer.from(text)
        await file.appendFile(bytes)
        const section = { position: end, length: bytes.length }
        end += bytes.length
        return section
      }),
    read: (section) =>
      Effect.promise(async () => {
        if (file === undefined) throw new Error("The scratch file of the import does not exist")
        return readSection(file, section)
      })
  }
})
