import { resolve } from "node:path"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { print } from "./Output.ts"

/** Prints which workspace was exported, and to which path. */
export const printExported = (id: WorkspaceId, target: string, json: boolean) =>
  print(json, { workspace_id: id, out: resolve(target) }, `Exported workspace ${id} to ${target}`)
