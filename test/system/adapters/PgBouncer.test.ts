import { describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { minMaxConnections } from "../../../src/adapters/outbound/postgres/connection/ConnectionBudget.ts"
import { Database } from "../../../src/adapters/outbound/postgres/Database.ts"
import { migrate } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { testPorts } from "../../contracts/postgresPorts.ts"
import { type PoolMode, startPgBouncer } from "../../support/pgbouncer.ts"
import { freshDatabase } from "../../support/postgres.ts"

/** A migrated database behind PgBouncer, where a process may open as few connections as possible. */
const makePooledDatabase = (mode: PoolMode) =>
  Layer.effectDiscard(Effect.orDie(migrate)).pipe(
    Layer.provideMerge(
      Layer.unwrap(
        Effect.gen(function* () {
          const url = yield* startPgBouncer(yield* freshDatabase, mode)
          return Database.layer({ url: Redacted.make(url) }, minMaxConnections)
        })
      )
    )
  )

describe.each(["session", "transaction"] as const)("PgBouncer in %s mode", (mode) =>
  testPorts(`PgBouncer in ${mode} mode`, makePooledDatabase(mode))
)
