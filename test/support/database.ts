import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { Administration } from "../../src/application/Administration.ts"
import { toRawParts } from "../../src/application/formats/RawPart.ts"
import type { Archive } from "../../src/application/formats/Archive.ts"
import { administrationLayer, type DatabaseOptions, databaseLayer } from "../../src/index.ts"
import { imported } from "./leaks.ts"
import { freshDatabase, noPostgres, urlOf } from "./postgres.ts"

/** A database that a service can be started on. */
export interface Backend {
  readonly name: string
  /** Why it is not to be had here. */
  readonly missing: string | undefined
  /** The environment that names a fresh, empty one. */
  readonly acquire: Effect.Effect<Record<string, string>, never, Scope.Scope>
}

export const embedded: Backend = {
  name: "the embedded database",
  missing: undefined,
  acquire: Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "prompts-"))),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
    ),
    (directory) => ({ DATA_DIR: directory })
  )
}

export const postgres: Backend = {
  name: "PostgreSQL",
  missing: noPostgres,
  acquire: Effect.map(freshDatabase, (name) => ({ DATABASE_URL: urlOf(name) }))
}

/** A scope for tests that are no Effects: what is acquired in it goes when it is closed. */
export const makeResources = () => {
  const scope = Effect.runSync(Scope.make())
  return {
    acquire: <A>(effect: Effect.Effect<A, never, Scope.Scope>): Promise<A> =>
      Effect.runPromise(Scope.provide(effect, scope)),
    release: (): Promise<void> => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

const optionsOf = (env: Readonly<Record<string, string>>): DatabaseOptions =>
  env.DATABASE_URL === undefined
    ? { socketPath: join(env.DATA_DIR!, ".s.PGSQL.5432") }
    : { url: Redacted.make(env.DATABASE_URL) }

/** The database of a running service, past the service. */
export const connectTo = (env: Readonly<Record<string, string>>) =>
  Effect.map(
    Layer.build(administrationLayer.pipe(Layer.provideMerge(databaseLayer(optionsOf(env))))),
    (context) => ({
      importArchive: (archive: Archive): Promise<unknown> => {
        imported(archive)
        return Effect.runPromise(
          Effect.flatMap(Administration, (administration) =>
            administration.importArchive(Stream.fromIterable(toRawParts(archive)))
          ).pipe(Effect.provideContext(context))
        )
      },
      sql: (text: string, params: ReadonlyArray<unknown> = []): Promise<ReadonlyArray<unknown>> =>
        Effect.runPromise(
          Effect.flatMap(SqlClient, (sql) => sql.unsafe(text, params)).pipe(Effect.provideContext(context))
        )
    })
  )
