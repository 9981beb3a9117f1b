import {
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync
} from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { embeddedMajor, type PostgresPrograms } from "./PostgresPrograms.ts"
import { findCurrentDirectory, findReason, readServerState, startSupervised } from "./PostgresProcess.ts"
import type { SystemUser } from "./ServerUser.ts"

// The user that runs the server could replace files of the database with links to files that only root may read or
// write. A process that runs as root therefore reads only numbers from the files of the database, and writes none of
// these files.

const directoryName = "postgresql"
const incompletePrefix = `${directoryName}.incomplete-`

const assertVersion = (directory: string): void => {
  const major = Number.parseInt(readFileSync(join(directory, "PG_VERSION"), "utf8"), 10)
  if (major !== embeddedMajor)
    throw new Error(
      `it holds a PostgreSQL ${major} database and this program embeds PostgreSQL ${embeddedMajor}; to carry the data over, run "prompt-retrieval export" for each workspace with the version of the program that wrote it, then "prompt-retrieval import" with this version on an empty DATA_DIR`
    )
}

const removeDirectory = (path: string): void => {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 5 })
  } catch {
    // A killed `initdb` still removes its files. A later start removes the directory.
  }
}

/** Runs a function with an open directory. Does not follow a link. */
const withDirectory = (path: string, run: (file: number) => void): void => {
  const file = openSync(path, constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    run(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Creates the files of an empty database in a temporary directory, and then renames the directory. A directory with the
 * final name therefore always contains a complete database. Any user who can open the socket may connect as any user of
 * the database. Only the user of the server and root can open the socket.
 */
const createDatabase = async (
  dataDir: string,
  directory: string,
  { initdb }: PostgresPrograms,
  user: SystemUser
): Promise<void> => {
  const incomplete = mkdtempSync(join(dataDir, incompletePrefix))
  try {
    withDirectory(incomplete, (file) => fchownSync(file, user.uid, user.gid))
    const args = [
      `--pgdata=${findCurrentDirectory(incomplete)}`,
      "--username=postgres",
      "--auth=trust",
      "--encoding=UTF8",
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8"
    ]
    const { code, output } = await startSupervised(initdb, args, incomplete, user).ended
    if (code !== 0) throw new Error(`initdb failed: ${findReason(output)}`)
    renameSync(incomplete, directory)
    withDirectory(dataDir, fsyncSync)
  } finally {
    removeDirectory(incomplete)
  }
}

/**
 * Returns true if the process with this id is a server that runs on the files of the directory. Outside Linux, returns
 * true if this process may send signals to the process with this id.
 */
const isServerOf = (directory: string, pid: number): boolean => {
  try {
    if (process.platform === "linux") return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(directory)
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** How long the server of a killed process may take to end, in milliseconds. */
const endTimeoutMs = 10_000

/** Waits until a server that a killed process left behind has ended. */
const waitForEarlierServer = async (directory: string): Promise<void> => {
  const deadline = performance.now() + endTimeoutMs
  for (;;) {
    const { pid } = readServerState(directory)
    if (pid === undefined || !isServerOf(directory, pid)) return
    if (performance.now() > deadline) throw new Error(`the process ${pid} still uses it`)
    await setTimeout(20)
  }
}

/**
 * Creates the database's files if they are missing, and returns their directory. Rejects if the data directory contains
 * a database that these programs cannot read, if `initdb` fails, or if the server of a killed process does not end. An
 * existing database does not change.
 */
export const prepareDatabase = async (
  dataDir: string,
  programs: PostgresPrograms,
  user: SystemUser
): Promise<string> => {
  const directory = join(dataDir, directoryName)
  for (const name of readdirSync(dataDir))
    if (name.startsWith(incompletePrefix)) removeDirectory(join(dataDir, name))
  if (existsSync(directory)) assertVersion(directory)
  else await createDatabase(dataDir, directory, programs, user)
  await waitForEarlierServer(directory)
  return directory
}
