import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterAll } from "vitest"
import * as EmbeddedPostgres from "../../../../../src/adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"

const living = new Set<ChildProcess>()
const directories: Array<string> = []

afterAll(async () => {
  await Promise.all([...living].map((child) => kill(child)))
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

export const temporaryDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "embedded-test-"))
  directories.push(directory)
  return directory
}

let made: string | undefined

/** A directory with an empty database in it: a copy, as making one takes PGlite seconds. */
export const databaseDirectory = async (): Promise<string> => {
  if (made === undefined) {
    made = temporaryDirectory()
    await Effect.runPromise(Effect.scoped(EmbeddedPostgres.open({ dataDir: made })))
  }
  const directory = temporaryDirectory()
  cpSync(made, directory, { recursive: true })
  return directory
}

/** What `serve.ts` says, `served` being whether it serves the database itself, once it has the database, or can't. */
export type Said =
  | { readonly socketPath: string; readonly served: boolean }
  | { readonly error: string; readonly message: string }

export interface Serving {
  readonly child: ChildProcess
  readonly said: Said
}

/** Starts another process that opens, or reaches, the database of a directory, and waits for what it says. */
export const serve = async (dataDir: string, how: "open" | "connect"): Promise<Serving> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "serve.ts"), dataDir, how], {
    stdio: ["pipe", "pipe", "inherit"]
  })
  living.add(child)
  child.once("exit", () => living.delete(child))
  let text = ""
  for await (const chunk of child.stdout) {
    text += chunk
    if (text.includes("\n")) return { child, said: JSON.parse(text) }
  }
  throw new Error(`the process ended and said only ${text}`)
}

const end = async (child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<number | null> => {
  if (child.exitCode === null && child.signalCode === null) {
    const exit = once(child, "exit")
    child.kill(signal)
    await exit
  }
  return child.exitCode
}

export const kill = (child: ChildProcess): Promise<number | null> => end(child, "SIGKILL")
/** Ends a process in order and gives its exit code. */
export const stop = (child: ChildProcess): Promise<number | null> => end(child, "SIGTERM")

/** The socket of a process that was expected to have the database. */
export const socketPathOf = ({ said }: Serving): string => {
  if ("error" in said) throw new Error(`${said.error}: ${said.message}`)
  return said.socketPath
}
