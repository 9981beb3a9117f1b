import { hostname, userInfo } from "node:os"
import * as Layer from "effect/Layer"
import { Actor } from "../application/administration/Actor.ts"

/** Returns the name of the user of this process; the numeric id if the system does not know the user. */
const readUserName = (): string => {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}

/** The actor of the audit log: the given name, or the user and the host of this process. */
export const layer = (actor: string | undefined) =>
  Layer.sync(Actor, () => actor ?? `${readUserName()}@${hostname()}`)
