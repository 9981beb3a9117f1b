import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { PGlite } from "@electric-sql/pglite"
import { splitFrames, startupPacket } from "./WireProtocol.ts"

/** The one session of an open PGlite, in the wire protocol. */
export interface PgliteSession {
  /** The response to a startup packet: authentication succeeded, and the session's parameters. */
  readonly greeting: ReadonlyArray<Buffer>
  /** Runs whole messages and returns the response to them. Rejects only if the database has failed and cannot continue. */
  readonly execute: (messages: Uint8Array) => Promise<Buffer>
  readonly close: () => Promise<void>
}

/** The exit status of a statement that failed with an SQL error, after which PGlite continues. */
const sqlErrorStatus = 100

/**
 * Makes PGlite throw the error that crashed it. After any error but an SQL error, PGlite 0.5 would otherwise loop
 * over the same messages forever.
 */
const detectCrash = (pglite: PGlite): void => {
  const module = pglite.Module
  const { _PostgresMainLoopOnce: runOnce, stackRestore } = module
  let crash: { readonly cause: unknown } | undefined
  module._PostgresMainLoopOnce = () => {
    try {
      runOnce()
    } catch (cause) {
      if ((cause as { readonly status?: unknown } | null)?.status !== sqlErrorStatus) crash = { cause }
      throw cause
    }
  }
  module.stackRestore = (pointer) => {
    if (crash !== undefined) throw crash.cause
    return stackRestore(pointer)
  }
}

/**
 * Releases the timers and open files of a crashed PGlite, which would keep its memory alive. Unlike `close`, this
 * runs none of PostgreSQL's code, which might write corrupt pages; the next start recovers from the write-ahead
 * log.
 */
const releaseResources = ({ Module: module }: PGlite): void => {
  for (const stream of module.FS.streams) if (stream !== null) ignoreErrors(() => module.FS.close(stream))
  ignoreErrors(() => module._emscripten_force_exit(0))
}

const ignoreErrors = (action: () => void): void => {
  try {
    action()
  } catch {
    // Emscripten reports every exit as an exception.
  }
}

/** The major version of PostgreSQL that PGlite embeds; PGlite opens data directories of this version only. */
export const embeddedMajor = "18"

const toVersionError = (major: string): Error =>
  new Error(
    `it holds a PostgreSQL ${major} database and this program embeds PostgreSQL ${embeddedMajor}; to carry the data over, ` +
      `run "prompt-retrieval export" for each workspace with the version of the program that wrote it, then ` +
      `"prompt-retrieval import" with this version on an empty DATA_DIR`
  )

/**
 * Opens the database of a data directory that this process owns, or creates one. Recovers after a crash, with
 * everything that was committed. Starts an interrupted creation over, because nothing can have been stored yet.
 */
export const openPgliteSession = async (dataDir: string): Promise<PgliteSession> => {
  const files = join(dataDir, "pglite")
  const creating = join(dataDir, "pglite.creating")
  if (existsSync(creating)) rmSync(files, { recursive: true, force: true })
  const versionFile = join(files, "PG_VERSION")
  const isNew = !existsSync(versionFile)
  const major = isNew ? embeddedMajor : readFileSync(versionFile, "utf8").trim()
  if (major !== embeddedMajor) throw toVersionError(major)
  const { PGlite } = await import("@electric-sql/pglite")
  if (isNew) writeFileSync(creating, "")
  mkdirSync(files, { recursive: true, mode: 0o700 })
  const pglite = await PGlite.create(files)
  if (isNew) rmSync(creating)
  detectCrash(pglite)

  // Only the streaming call returns the response unparsed: the others keep every parsed message in memory.
  const execute = async (messages: Uint8Array): Promise<Buffer> => {
    const chunks: Array<Buffer> = []
    const onRawData = (bytes: Uint8Array): void => {
      chunks.push(Buffer.from(bytes))
    }
    try {
      await pglite.runExclusive(() => pglite.execProtocolRawStream(messages, { onRawData }))
    } catch (cause) {
      releaseResources(pglite)
      throw cause
    }
    const [first] = chunks
    return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
  }

  const greeting = [...splitFrames(await execute(startupPacket))].filter((frame) =>
    /^[RS]/.test(frame.toString("latin1", 0, 1))
  )
  return { greeting, execute, close: () => pglite.close() }
}
