import * as Schema from "effect/Schema"
import { Uuid } from "./Prompt.ts"

export const WorkspaceId = Uuid.pipe(Schema.brand("WorkspaceId"))
export type WorkspaceId = typeof WorkspaceId.Type
