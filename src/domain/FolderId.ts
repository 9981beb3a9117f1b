import * as Schema from "effect/Schema"
import { Uuid } from "./Uuid.ts"

export const FolderId = Uuid.pipe(Schema.brand("FolderId"))
export type FolderId = typeof FolderId.Type
