import * as Schema from "effect/Schema"
import { makeFirstRowDecoder } from "../connection/RowDecoder.ts"
import { serverIdentity } from "../connection/SessionSetup.ts"
import { type Position, parsePosition } from "./Position.ts"

/** Identifies the WAL that positions belong to. */
export interface Lineage {
  /** The identifier of the cluster, which its standbys share. */
  readonly system: string
  /** The OID of the database. */
  readonly database: string
  /** The timeline: each promotion of a standby begins a new one. */
  readonly timeline: number
}

const lineageColumns = `(select system_identifier::text from pg_control_system()) as system,
  (select oid::text from pg_database where datname = current_database()) as database`

/** Selects the state of the primary. The position is after every record that is in the WAL, flushed or not. */
export const selectPrimary = `select position::text, left(pg_walfile_name(position), 8) as timeline, ${lineageColumns}
  from (select case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() end) wal (position)`

const decodePrimaryRow = makeFirstRowDecoder(
  Schema.Struct({
    position: Schema.NullOr(Schema.String),
    timeline: Schema.NullOr(Schema.String),
    system: Schema.String,
    database: Schema.String
  })
)

/** The state of the primary. */
export interface PrimaryState extends Lineage {
  readonly position: Position
}

/** Decodes the row of `selectPrimary`; `undefined` if the server is a standby. */
export const decodePrimary = (rows: ReadonlyArray<unknown>): PrimaryState | undefined => {
  const { position, timeline, system, database } = decodePrimaryRow(rows)
  return position === null || timeline === null
    ? undefined
    : { position: parsePosition(position), timeline: Number.parseInt(timeline, 16), system, database }
}

/**
 * Selects the state of a standby. The timeline is the one that it receives, which only some roles may see, or the one of
 * its last restart point, which may be minutes behind.
 */
export const selectStandby = `select pg_is_in_recovery() as is_standby, pg_last_wal_replay_lsn()::text as position,
  ${serverIdentity} as server, ${lineageColumns},
  greatest(
    (select timeline_id from pg_control_checkpoint()), (select max(received_tli) from pg_stat_wal_receiver)
  ) as timeline`

const decodeStandbyRow = makeFirstRowDecoder(
  Schema.Struct({
    is_standby: Schema.Boolean,
    position: Schema.NullOr(Schema.String),
    server: Schema.String,
    system: Schema.String,
    database: Schema.String,
    timeline: Schema.Int
  })
)

/** The state of a standby. */
export interface StandbyState extends Lineage {
  readonly position: Position
  readonly server: string
}

/** Decodes the row of `selectStandby`; `undefined` if the server is not a standby. */
export const decodeStandby = (rows: ReadonlyArray<unknown>): StandbyState | undefined => {
  const { is_standby, position, ...state } = decodeStandbyRow(rows)
  return !is_standby || position === null ? undefined : { ...state, position: parsePosition(position) }
}

/** Returns why a standby does not replay the WAL of the primary; `undefined` if it does. */
export const findLineageProblem = (standby: Lineage, primary: Lineage): string | undefined => {
  if (standby.system !== primary.system) return "it belongs to another database cluster"
  if (standby.database !== primary.database) return "its URL names another database"
  if (standby.timeline !== primary.timeline)
    return `it is on timeline ${standby.timeline}, the primary is on ${primary.timeline}`
  return undefined
}
