import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { channel } from "../../../src/adapters/outbound/postgres/schema/Triggers.ts"

/** Returns the sorted payloads of the notifications that an effect causes. */
export const collectNotifications = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const client = yield* PgClient.PgClient
  const notifications = yield* client.listen(channel)
  yield* work
  yield* client.notify(channel, "end")
  const payloads: Array<string> = []
  while (payloads.at(-1) !== "end") payloads.push((yield* Queue.take(notifications)).payload)
  return payloads.slice(0, -1).toSorted()
}, Effect.scoped)
