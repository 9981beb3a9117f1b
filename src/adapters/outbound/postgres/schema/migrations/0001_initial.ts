import { enableTrigger, expectedTriggers } from "../Triggers.ts"
import { listSizes } from "./initial/ListSizes.ts"
import { notifications } from "./initial/Notifications.ts"
import { tables } from "./initial/Tables.ts"
import { tagLists } from "./initial/TagLists.ts"

/**
 * Statements that set the firing modes of triggers. Some triggers also run for rows that arrive by logical replication.
 * Other triggers run only for such rows.
 */
const firingModes: ReadonlyArray<string> = expectedTriggers
  .filter(({ option }) => option !== "")
  .map(enableTrigger)

/** Migration 1: the tables with the limits of the domain, and the triggers that keep tag lists and caches correct. */
export const statements: ReadonlyArray<string> = [
  ...tables,
  ...tagLists,
  ...listSizes,
  ...notifications,
  ...firingModes
]
