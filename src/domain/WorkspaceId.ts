import * as Schema from "effect/Schema"
import { Uuid } from "./Uuid.ts"

export const WorkspaceId = Uuid.pipe(Schema.brand("WorkspaceId"))
export type WorkspaceId = typeof WorkspaceId.Type
