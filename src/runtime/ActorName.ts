import { hostname, userInfo } from "node:os"
import * as Layer from "effect/Layer"
import { Actor } from "../application/administration/Actor.ts"

/** Returns the name of the user of this process. Returns the numeric id if the system has no name for the user. */
const readUserName = (): string => {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}

/** The actor for the audit log: the given name, or by default the user and the host of this process. */
export const layer = (actor: string | undefined) =>
  Layer.sync(Actor, () => actor ?? `${readUserName()}@${hostname()}`)
