import * as Schema from "effect/Schema"
import { makeFirstRowDecoder } from "../driver/RowDecoder.ts"

/** The key of the advisory lock of workspace `$1`, which imports, edits and its deletion take. */
const lockKey = "hashtextextended('prompt_retrieval_import ' || $1, 0)"

/** Takes the lock of workspace `$1` until the transaction ends. Waits while another transaction holds the lock. */
export const lockWorkspace = `select pg_advisory_xact_lock(${lockKey})`

/** Takes the lock of workspace `$1` until the transaction ends. `locked` is false if another transaction holds it. */
export const tryLockWorkspace = `select pg_try_advisory_xact_lock(${lockKey}) as locked`

export const decodeTryLock = makeFirstRowDecoder(Schema.Struct({ locked: Schema.Boolean }))
