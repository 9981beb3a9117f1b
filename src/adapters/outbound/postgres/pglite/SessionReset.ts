import { randomUUID } from "node:crypto"
import * as Wire from "./WireProtocol.ts"

const quoteLiteral = (value: string): string => `E'${value.replace(/[\\']/g, "\\$&")}'`
const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Everything that `DISCARD ALL` resets, except `LISTEN`: the subscriptions belong to this process, not to a client. */
const resetStatements = [
  "CLOSE ALL",
  "SET SESSION AUTHORIZATION DEFAULT",
  "RESET ALL",
  "DEALLOCATE ALL",
  "SELECT pg_advisory_unlock_all()",
  "DISCARD TEMP",
  "DISCARD SEQUENCES"
]

/** The name of the prepared statement that returns the session's channels; random, so no client uses it. */
const channelsStatement = `prompt_retrieval_${randomUUID()}`
const prepareChannelsStatement = Buffer.concat([
  Wire.buildParse("select pg_catalog.pg_listening_channels()", channelsStatement),
  Wire.syncMessage
])

const toListenStatements = (channels: ReadonlyArray<string>): ReadonlyArray<string> =>
  channels.map((channel) => `LISTEN ${quoteIdentifier(channel)}`)

/** Builds the messages that remove what the previous client left in the session and subscribe it to `channels`. */
export const buildReset = (channels: ReadonlyArray<string>): Buffer => {
  const reset = Wire.buildQuery([...resetStatements, ...toListenStatements(channels)].join(";"))
  return channels.length === 0 ? reset : Buffer.concat([reset, prepareChannelsStatement])
}

/** Builds the query that applies a client's run-time parameters, or returns `undefined` if there are none. */
export const buildSettings = (settings: ReadonlyMap<string, string>): Buffer | undefined => {
  if (settings.size === 0) return undefined
  const calls = [...settings].map(
    ([name, value]) => `set_config(${quoteLiteral(name)}, ${quoteLiteral(value)}, false)`
  )
  return Wire.buildQuery(`SELECT ${calls.join(", ")}`)
}

/** Queries the channels that the session is subscribed to; the response's first column names them. */
export const queryChannels = Buffer.concat([
  Wire.buildBind(channelsStatement),
  Wire.executeMessage,
  Wire.syncMessage
])

/**
 * Builds the messages that subscribe the session again. Preparing the statement fails if it still exists, which
 * does no harm.
 */
export const buildResubscription = (channels: ReadonlyArray<string>): Buffer =>
  Buffer.concat([Wire.buildQuery(toListenStatements(channels).join(";")), prepareChannelsStatement])

/**
 * Ends an open transaction without committing any of it, even in the middle of an extended-query batch: a statement
 * that fails aborts the batch, and `ROLLBACK` ends its transaction.
 */
export const rollback = Buffer.concat([
  Wire.buildParse("abort the batch"),
  Wire.syncMessage,
  Wire.buildQuery("ROLLBACK")
])
