import { enableTrigger, expectedTriggers } from "../../Triggers.ts"

/** Makes triggers also run, or only run, where rows arrive by logical replication. */
export const firingModes: ReadonlyArray<string> = expectedTriggers
  .filter(({ option }) => option !== "")
  .map(enableTrigger)
