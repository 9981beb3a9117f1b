import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { PGlite } from "@electric-sql/pglite"
import { framesOf, startup } from "./WireProtocol.ts"

/** The one session of an open PGlite, as raw protocol. */
export interface Database {
  /** What a client's startup packet is answered with: that it is welcome, and the session's parameters. */
  readonly greeting: ReadonlyArray<Buffer>
  /** Runs whole messages and gives what they are answered with. Rejects only when the database has ended. */
  readonly execute: (messages: Uint8Array) => Promise<Buffer>
  readonly close: () => Promise<void>
}

/** How PGlite leaves a statement that failed with an SQL error; it goes on from there. */
const sqlErrorStatus = 100

/**
 * After any other error PGlite 0.5 has ended but goes on, in an endless loop over the same messages. This makes the
 * next step of that loop throw what ended it.
 */
const throwWhenEnded = (pglite: PGlite): void => {
  const module = pglite.Module
  const { _PostgresMainLoopOnce: runOnce, stackRestore } = module
  let ended: { readonly cause: unknown } | undefined
  module._PostgresMainLoopOnce = () => {
    try {
      runOnce()
    } catch (cause) {
      if ((cause as { readonly status?: unknown } | null)?.status !== sqlErrorStatus) ended = { cause }
      throw cause
    }
  }
  module.stackRestore = (pointer) => {
    if (ended !== undefined) throw ended.cause
    return stackRestore(pointer)
  }
}

/**
 * Lets go of a PGlite that has ended: of its timers and open files, which would hold its memory. Unlike `close` this
 * runs none of PostgreSQL's code, which might write what is broken; the log of what was committed is read on opening.
 */
const discard = ({ Module: module }: PGlite): void => {
  for (const stream of module.FS.streams) if (stream !== null) attempt(() => module.FS.close(stream))
  attempt(() => module._emscripten_force_exit(0))
}

const attempt = (action: () => void): void => {
  try {
    action()
  } catch {
    // An exit is always reported as an exception.
  }
}

/** The major version of PostgreSQL that PGlite embeds. It opens data directories of this version only. */
export const embeddedMajor = "18"

const otherMajor = (major: string): Error =>
  new Error(
    `it holds a PostgreSQL ${major} database and this program embeds PostgreSQL ${embeddedMajor}; to carry the data over, ` +
      `run "prompt-retrieval export" for each workspace with the version of the program that wrote it, then ` +
      `"prompt-retrieval import" with this version on an empty DATA_DIR`
  )

/**
 * Opens the database that lives in a data directory that this process owns, with what was committed before, however
 * the last process ended. A creation that was cut short is begun anew: nothing can have been stored in it.
 */
export const openDatabase = async (dataDir: string): Promise<Database> => {
  const files = join(dataDir, "pglite")
  const creating = join(dataDir, "pglite.creating")
  if (existsSync(creating)) rmSync(files, { recursive: true, force: true })
  const versionFile = join(files, "PG_VERSION")
  const isNew = !existsSync(versionFile)
  const major = isNew ? embeddedMajor : readFileSync(versionFile, "utf8").trim()
  if (major !== embeddedMajor) throw otherMajor(major)
  const { PGlite } = await import("@electric-sql/pglite")
  if (isNew) writeFileSync(creating, "")
  mkdirSync(files, { recursive: true, mode: 0o700 })
  const pglite = await PGlite.create(files)
  if (isNew) rmSync(creating)
  throwWhenEnded(pglite)

  // Only the streaming call leaves the answer unparsed: the others keep every parsed message in memory.
  const execute = async (messages: Uint8Array): Promise<Buffer> => {
    const chunks: Array<Buffer> = []
    const onRawData = (bytes: Uint8Array): void => {
      chunks.push(Buffer.from(bytes))
    }
    try {
      await pglite.runExclusive(() => pglite.execProtocolRawStream(messages, { onRawData }))
    } catch (cause) {
      discard(pglite)
      throw cause
    }
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  }

  const greeting = [...framesOf(await execute(startup))].filter((frame) =>
    /^[RS]/.test(frame.toString("latin1", 0, 1))
  )
  return { greeting, execute, close: () => pglite.close() }
}
