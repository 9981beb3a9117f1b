import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"
import { copyEmptyDatabase } from "../../../../support/embeddedDirectories.ts"

const running = new Set<ChildProcess>()
const directories: Array<string> = []

afterAll(async () => {
  await Promise.all([...running].map((child) => kill(child)))
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

export const temporaryDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "embedded-test-"))
  directories.push(directory)
  return directory
}

/** Returns a directory with an empty database. */
export const databaseDirectory = async (): Promise<string> => {
  const directory = temporaryDirectory()
  await copyEmptyDatabase(directory)
  return directory
}

/** The report of `serve.ts`: the database that it has (`served` if it serves the database itself), or its error. */
export type Report =
  | { readonly socketPath: string; readonly served: boolean }
  | { readonly error: string; readonly message: string }

export interface DatabaseProcess {
  readonly child: ChildProcess
  readonly report: Report
}

/** Starts another process that opens, or connects to, the database of a directory, and waits for its report. */
export const serve = async (dataDir: string, method: "open" | "connect"): Promise<DatabaseProcess> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "serve.ts"), dataDir, method], {
    stdio: ["pipe", "pipe", "inherit"]
  })
  running.add(child)
  child.once("exit", () => running.delete(child))
  let text = ""
  for await (const chunk of child.stdout) {
    text += chunk
    if (text.includes("\n")) return { child, report: JSON.parse(text) }
  }
  throw new Error(`the process ended after printing only: ${text}`)
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
/** Stops a process with SIGTERM and returns its exit code. */
export const stop = (child: ChildProcess): Promise<number | null> => end(child, "SIGTERM")

/** Returns the socket of a process that has the database; throws if the process reported an error. */
export const requireSocketPath = ({ report }: DatabaseProcess): string => {
  if ("error" in report) throw new Error(`${report.error}: ${report.message}`)
  return report.socketPath
}
