import { listSizes } from "./initial/ListSizes.ts"
import { notifications } from "./initial/Notifications.ts"
import { tables } from "./initial/Tables.ts"
import { tagLists } from "./initial/TagLists.ts"
import { firingModes } from "./initial/FiringModes.ts"

/** Migration 1: the tables with the limits of the domain, and the triggers that keep tag lists and caches right. */
export const statements: ReadonlyArray<string> = [
  ...tables,
  ...tagLists,
  ...listSizes,
  ...notifications,
  ...firingModes
]
