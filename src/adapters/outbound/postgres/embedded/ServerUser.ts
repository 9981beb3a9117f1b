import { readFileSync, statSync } from "node:fs"
import { userInfo } from "node:os"
import * as Data from "effect/Data"

export interface SystemUser {
  readonly uid: number
  readonly gid: number
  readonly name: string
}

/** Reads the users of this machine from `/etc/passwd`. */
const readUsers = (): ReadonlyArray<SystemUser> =>
  readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
    .map(([name = "", , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))

/** Returns the user of this process. PostgreSQL needs the user's name. */
const findOwnUser = (): SystemUser => {
  try {
    const { uid, gid, username } = userInfo()
    return { uid, gid, name: username }
  } catch {
    throw new EmbeddedUnavailable(`the user id ${process.getuid?.()} has no name on this machine`)
  }
}

/**
 * Returns the user that runs PostgreSQL: the user of this process, or if that is root, which PostgreSQL does not
 * accept, the owner of the data directory, `postgres` or `nobody`. Throws `EmbeddedUnavailable` if there is no such
 * user.
 */
export const findServerUser = (dataDir: string): SystemUser => {
  const own = findOwnUser()
  if (own.uid !== 0) return own
  const users = readUsers()
  const owner = statSync(dataDir).uid
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

/** Returns the options of `spawn` that run a program as a user. They are empty for the user of this process. */
export const runAs = ({ uid, gid }: SystemUser): { readonly uid?: number; readonly gid?: number } =>
  uid === process.getuid?.() ? {} : { uid, gid }

/** The embedded database cannot run on this machine or as this user. */
export class EmbeddedUnavailable extends Data.TaggedError("EmbeddedUnavailable")<{
  readonly message: string
}> {
  constructor(reason: string) {
    super({
      message: `the embedded database cannot run here: ${reason}; set DATABASE_URL to use a PostgreSQL server`
    })
  }
}
