import { spawnSync } from "node:child_process"
import {
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync
} from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { embeddedMajor, type PostgresPrograms } from "./PostgresPrograms.ts"
import { findCurrentDirectory, findReason, startSupervised } from "./PostgresProcess.ts"
import { runAs, type SystemUser } from "./ServerUser.ts"

const directoryName = "postgresql"
const incompletePrefix = `${directoryName}.incomplete-`

/**
 * Runs a shell script in a directory of the database, as the user of the server. Only this user is allowed to access the
 * files of the database: the user may have replaced them with links to files of root. Returns the output.
 */
const runScript = (directory: string, user: SystemUser, script: string, name: string, input = ""): string => {
  const { status, stdout, stderr, error } = spawnSync("/bin/sh", ["-c", script, "sh", name], {
    ...runAs(user),
    cwd: directory,
    // The user may have no access to the directories of the PATH of root.
    env: { PATH: "/usr/bin:/bin" },
    input,
    encoding: "utf8"
  })
  if (status !== 0) throw error ?? new Error(stderr.trim())
  return stdout
}

const replaceFile = (directory: string, user: SystemUser, name: string, text: string): void => {
  runScript(directory, user, 'umask 077 && rm -f -- "$1" && cat > "$1"', name, text)
}

const assertVersion = (directory: string, user: SystemUser): void => {
  const major = runScript(directory, user, 'cat -- "$1"', "PG_VERSION").trim()
  if (major !== embeddedMajor)
    throw new Error(
      `it holds a PostgreSQL ${major} database and this program embeds PostgreSQL ${embeddedMajor}; to carry the data over, run "prompt-retrieval export" for each workspace with the version of the program that wrote it, then "prompt-retrieval import" with this version on an empty DATA_DIR`
    )
}

/**
 * Removes the directories of incomplete databases. Tries several times, because `rmSync` may stop early without an
 * error while a killed `initdb` removes its own files.
 */
const removeIncomplete = async (dataDir: string): Promise<void> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const names = readdirSync(dataDir).filter((name) => name.startsWith(incompletePrefix))
    if (names.length === 0) return
    for (const name of names) rmSync(join(dataDir, name), { recursive: true, force: true, maxRetries: 5 })
    await setTimeout(20)
  }
}

const syncDirectory = (path: string): void => {
  const file = openSync(path, "r")
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Creates the files of an empty database in a temporary directory, and then renames the directory. A directory with the
 * final name therefore always contains a complete database.
 */
const createDatabase = async (
  dataDir: string,
  directory: string,
  { initdb }: PostgresPrograms,
  user: SystemUser
): Promise<void> => {
  const incomplete = mkdtempSync(join(dataDir, incompletePrefix))
  try {
    if (runAs(user).uid !== undefined) lchownSync(incomplete, user.uid, user.gid)
    const args = [
      `--pgdata=${findCurrentDirectory(incomplete)}`,
      "--username=postgres",
      "--auth=peer",
      "--encoding=UTF8",
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8"
    ]
    const { code, output } = await startSupervised(initdb, args, incomplete, user).ended
    if (code !== 0) throw new Error(`initdb failed: ${findReason(output)}`)
    renameSync(incomplete, directory)
    syncDirectory(dataDir)
  } finally {
    rmSync(incomplete, { recursive: true, force: true, maxRetries: 5 })
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

/** Prints a file, or `missing` if the file does not exist. The server may remove the file at any time. */
const readLock = 'cat -- "$1" || { ! ls -- "$1" >/dev/null 2>&1 && echo missing; }'

/** How long the server of a killed process may take to end, in milliseconds. */
const endTimeoutMs = 10_000

/**
 * Waits until a server that a killed process left behind has ended. Then writes the id of this process into the
 * server's lock files: PostgreSQL ignores a lock file with the id of its parent process, but does not start if the id
 * belongs to another running process.
 */
const releaseLocks = async (directory: string, user: SystemUser): Promise<void> => {
  const deadline = performance.now() + endTimeoutMs
  for (const name of ["postmaster.pid", ".s.PGSQL.5432.lock"]) {
    for (;;) {
      const [pid = "", ...lines] = runScript(directory, user, readLock, name).split("\n")
      if (pid === "missing") break
      if (!isServerOf(directory, Number(pid))) {
        replaceFile(directory, user, name, [process.pid, ...lines].join("\n"))
        break
      }
      if (performance.now() > deadline) throw new Error(`the process ${pid} still uses it`)
      await setTimeout(20)
    }
  }
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Lets the user of the server, the user of this process and root connect as any user of the database. */
const writeAccessRules = (directory: string, user: SystemUser): void => {
  const names = new Set([user.name, userInfo().username, "root"])
  const owners = [...names].map((name) => `owner ${quote(name)} all\n`).join("")
  replaceFile(directory, user, "pg_hba.conf", "local all all peer map=owner\n")
  replaceFile(directory, user, "pg_ident.conf", owners)
}

/**
 * Creates the database's files if they are missing, and returns their directory. Rejects if the data directory contains
 * a database that these programs cannot read, if `initdb` fails, or if the server of a killed process does not end. An
 * existing database does not change if the promise rejects.
 */
export const prepareDatabase = async (
  dataDir: string,
  programs: PostgresPrograms,
  user: SystemUser
): Promise<string> => {
  const directory = join(dataDir, directoryName)
  await removeIncomplete(dataDir)
  if (existsSync(directory)) assertVersion(directory, user)
  else await createDatabase(dataDir, directory, programs, user)
  await releaseLocks(directory, user)
  writeAccessRules(directory, user)
  return directory
}
