import { readFileSync, statSync } from "node:fs"
import * as Data from "effect/Data"

export interface SystemUser {
  readonly uid: number
  readonly gid: number
}

/**
 * Returns the user that runs PostgreSQL: the user of this process. PostgreSQL does not run as root. If this process
 * runs as root, returns the first of these users that exists: the owner of the data directory (unless the owner is
 * root), `postgres`, `nobody`. Throws `EmbeddedUnavailable` if none of these users exists.
 */
export const findServerUser = (dataDir: string): SystemUser => {
  const [uid = -1, gid = -1] = [process.getuid?.(), process.getgid?.()]
  if (uid !== 0) return { uid, gid }
  const owner = statSync(dataDir).uid
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
    .map(([name, , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
  const user =
    users.find(({ uid }) => uid === owner && uid !== 0) ??
    users.find(({ name }) => name === "postgres") ??
    users.find(({ name }) => name === "nobody")
  if (user === undefined)
    throw new EmbeddedUnavailable(
      "PostgreSQL refuses to run as root, and there is no user postgres or nobody"
    )
  return user
}

/** Returns the options of `spawn` that run a program as a user. For the user of this process, the options are empty. */
export const runAs = ({ uid, gid }: SystemUser): { readonly uid?: number; readonly gid?: number } =>
  uid === process.getuid?.() ? {} : { uid, gid }

/** The embedded database cannot run on this machine or as this user. */
export class EmbeddedUnavailable extends Data.TaggedError("EmbeddedUnavailable")<{
  readonly message: string
}> {
  /** The message always suggests a PostgreSQL server. `remedy` is a further suggestion. */
  constructor(reason: string, remedy?: string) {
    const remedies = [remedy, "set DATABASE_URL to use a PostgreSQL server"].filter(Boolean).join(", or ")
    super({ message: `the embedded database cannot run here: ${reason}; ${remedies}` })
  }
}
