import { describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { minMaxConnections } from "../../../../src/adapters/outbound/postgres/connection/ConnectionBudget.ts"
import { Database } from "../../../../src/adapters/outbound/postgres/Database.ts"
import { migrate } from "../../../../src/adapters/outbound/postgres/Migrations.ts"
import * as PostgresKeyStore from "../../../../src/adapters/outbound/postgres/PostgresKeyStore.ts"
import * as PostgresPromptRepo from "../../../../src/adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as PostgresPromptTitles from "../../../../src/adapters/outbound/postgres/PostgresPromptTitles.ts"
import * as PostgresWorkspaceStore from "../../../../src/adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import { testFileImport } from "../../../contracts/FileImport.ts"
import { testKeyStore } from "../../../contracts/KeyStore.ts"
import { testPromptRepo } from "../../../contracts/PromptRepo.ts"
import { testPromptTitles } from "../../../contracts/PromptTitles.ts"
import { testWorkspaceStore } from "../../../contracts/WorkspaceStore/contract.ts"
import { noPgBouncer, type PoolMode, startPgBouncer } from "../../../support/pgbouncer.ts"
import { freshDatabase, migratedDatabase, noPostgres } from "../../../support/postgres.ts"

const ports = Layer.mergeAll(
  PostgresPromptRepo.layer,
  PostgresPromptTitles.layer,
  PostgresKeyStore.layer,
  PostgresWorkspaceStore.layer
)

/** Runs all suites, each on a new database. */
const testPorts = <E>(name: string, database: Layer.Layer<Layer.Success<typeof migratedDatabase>, E>) => {
  const fresh = () => Layer.provide(ports, Layer.fresh(database))
  testKeyStore(name, fresh())
  testPromptRepo(name, fresh())
  testPromptTitles(name, fresh())
  testWorkspaceStore(name, fresh())
  testFileImport(name, fresh())
}

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

describe.skipIf(noPostgres !== undefined)("PostgreSQL", () => testPorts("PostgreSQL", migratedDatabase))

describe.skipIf(noPgBouncer !== undefined).each(["session", "transaction"] as const)(
  "PgBouncer in %s mode",
  (mode) => testPorts(`PgBouncer in ${mode} mode`, makePooledDatabase(mode))
)
