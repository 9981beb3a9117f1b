import * as Schema from "effect/Schema"
import { makeFirstRowDecoder } from "../driver/RowDecoder.ts"
import { serverIdentity } from "../connection/SessionSetup.ts"

/** The position of a server in its write-ahead log (WAL). */
export interface ServerState {
  /** The position in bytes. */
  readonly position: bigint
  /** Identifies the WAL by its cluster, its database and its timeline. A promotion begins a new timeline. */
  readonly lineage: string
}

export interface StandbyState extends ServerState {
  readonly server: string
  /** Time since the primary committed the last transaction that the standby has replayed, in milliseconds. */
  readonly sinceLastMs: number
}

const formatLineage = (
  timeline: string
): string => `concat_ws('/', (select system_identifier from pg_control_system()),
    (select oid from pg_database where datname = current_database()), ${timeline})`

/**
 * Sends a notification and selects the state of the primary. Fails on a standby. The position is after every record of
 * the WAL, even a record that is not on disk yet. The statement does not wait for the disk, and waits at most 250 ms
 * for another transaction that notifies.
 */
export const sendMarker = `select set_config('synchronous_commit', 'off', true),
  set_config('lock_timeout', '250ms', true), pg_notify($1, $2), (position - '0/0')::text as position,
  ${formatLineage("('x' || left(pg_walfile_name(position), 8))::bit(32)::int")} as lineage
  from (select pg_current_wal_insert_lsn()) wal (position)`

const decodePrimaryRow = makeFirstRowDecoder(
  Schema.Struct({ position: Schema.String, lineage: Schema.String })
)

/** Decodes the row of `sendMarker`. */
export const decodePrimary = (rows: ReadonlyArray<unknown>): ServerState => {
  const { position, lineage } = decodePrimaryRow(rows)
  return { lineage, position: BigInt(position) }
}

/**
 * Selects the state of a standby, with the timeline of the WAL that the standby receives. A role that may not read this
 * timeline gets the timeline of the last restart point, which may be minutes old.
 */
export const selectStandby = `select pg_is_in_recovery() as "isStandby", ${serverIdentity} as server,
  (pg_last_wal_replay_lsn() - '0/0')::text as position,
  coalesce(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000, 0)::float8 as "sinceLastMs",
  ${formatLineage(`greatest((select timeline_id from pg_control_checkpoint()),
    (select max(received_tli) from pg_stat_wal_receiver))`)} as lineage`

const decodeStandbyRow = makeFirstRowDecoder(
  Schema.Struct({
    isStandby: Schema.Boolean,
    server: Schema.String,
    position: Schema.NullOr(Schema.String),
    sinceLastMs: Schema.Number,
    lineage: Schema.String
  })
)

/** Decodes the row of `selectStandby`; `undefined` if the server is not a standby. */
export const decodeStandby = (rows: ReadonlyArray<unknown>): StandbyState | undefined => {
  const { isStandby, position, ...state } = decodeStandbyRow(rows)
  return !isStandby || position === null ? undefined : { ...state, position: BigInt(position) }
}
