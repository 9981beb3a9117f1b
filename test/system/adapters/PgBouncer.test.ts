import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { minMaxConnections } from "../../../src/adapters/outbound/postgres/connection/ConnectionBudget.ts"
import { Database } from "../../../src/adapters/outbound/postgres/Database.ts"
import { migrate } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { testPorts } from "../../contracts/postgresPorts.ts"
import { runPgBouncer } from "../../support/database/pgbouncer.ts"
import { freshDatabase, toDatabaseUrl } from "../../support/database/server.ts"

/** A migrated database behind PgBouncer, with the smallest number of connections that the configuration allows. */
const pooledDatabase = Layer.effectDiscard(Effect.orDie(migrate)).pipe(
  Layer.provideMerge(
    Layer.unwrap(
      Effect.gen(function* () {
        const { url } = yield* runPgBouncer(toDatabaseUrl(yield* freshDatabase), "transaction")
        return Database.layer({ url: Redacted.make(url) }, minMaxConnections)
      })
    )
  )
)

testPorts("PgBouncer in transaction mode", pooledDatabase)
