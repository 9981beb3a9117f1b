import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { describeSqlError, sqlState } from "../driver/SqlErrors.ts"
import { makeDatabaseServer } from "./DatabaseServer.ts"

/** Connects once. If this fails, returns the reason as a message for the operator. Otherwise returns `undefined`. */
export const findConnectionProblem = (url: Redacted.Redacted): Effect.Effect<string | undefined> =>
  PgConnection.make(makeDatabaseServer(url).config).pipe(
    Effect.scoped,
    Effect.match({
      onSuccess: () => undefined,
      onFailure: (error) =>
        // The database does not exist (3D000), or the role or its password is wrong (28000, 28P01).
        /^(3D|28)/.test(sqlState(error))
          ? `PostgreSQL rejected the connection of DATABASE_URL: ${describeSqlError(error)}`
          : `the database cannot be reached: ${describeSqlError(error)}`
    })
  )
