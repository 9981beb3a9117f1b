import {
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync
} from "node:fs"
import { join } from "node:path"
import { findCurrentDirectory, startSupervised } from "./PostgresProcess.ts"
import { embeddedMajor } from "./PostgresPrograms.ts"
import type { SystemUser } from "./ServerUser.ts"

// The user that runs the server could replace files of the database with links to files that only root may read or
// write. A process that runs as root therefore reads only numbers from the files of the database, and writes none of
// these files.

const directoryName = "postgresql"
/** Matches the directory of an incomplete database or of incomplete programs (`PostgresPrograms.ts`). */
const incompletePattern = /^postgresql.*\.incomplete-/

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
    // A killed `initdb` may still be removing its files. A later start removes the directory.
  }
}

/**
 * Creates the database's files if they are missing, and returns their directory. Creates the files in a temporary
 * directory, and then renames the directory, so a directory with the final name is complete. Rejects if another major
 * version of PostgreSQL wrote the files, or if `initdb` fails. Connections need no password, because only the server's
 * user and root can open the socket.
 */
export const prepareDatabase = async (
  dataDir: string,
  programs: string,
  user: SystemUser
): Promise<string> => {
  const directory = join(dataDir, directoryName)
  for (const name of readdirSync(dataDir))
    if (incompletePattern.test(name)) removeDirectory(join(dataDir, name))
  if (existsSync(directory)) {
    assertVersion(directory)
    return directory
  }
  const incomplete = mkdtempSync(`${directory}.incomplete-`)
  try {
    // `lchownSync` does not follow a link.
    lchownSync(incomplete, user.uid, user.gid)
    const args = [
      `--pgdata=${findCurrentDirectory(incomplete)}`,
      "--username=postgres",
      "--auth=trust",
      "--encoding=UTF8",
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8"
    ]
    const { code, reason } = await startSupervised(join(programs, "initdb"), args, incomplete, user).ended
    if (code !== 0) throw new Error(`initdb failed: ${reason}`)
    renameSync(incomplete, directory)
    const file = openSync(dataDir, "r")
    fsyncSync(file)
    closeSync(file)
  } finally {
    removeDirectory(incomplete)
  }
  return directory
}
