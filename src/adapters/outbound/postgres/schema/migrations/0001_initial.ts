import { enableTrigger, expectedTriggers } from "../Triggers.ts"
import { listSizes } from "./initial/ListSizes.ts"
import { notifications } from "./initial/Notifications.ts"
import { tables } from "./initial/Tables.ts"
import { tagLists } from "./initial/TagLists.ts"

/**
 * Statements for the triggers whose firing mode is not the default: the triggers that also run, or only run, for rows
 * that arrive by logical replication.
 */
const firingModes: ReadonlyArray<string> = expectedTriggers
  .filter(({ option }) => option !== "")
  .map(enableTrigger)

/**
 * Migration 1: the tables, whose constraints are the limits of the domain, and the triggers that limit the numbers of
 * tags and fragments of a prompt, update the tag lists and notify of changes.
 */
export const statements: ReadonlyArray<string> = [
  ...tables,
  ...tagLists,
  ...listSizes,
  ...notifications,
  ...firingModes
]
