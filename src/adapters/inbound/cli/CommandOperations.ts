import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Administration } from "../../../application/Administration.ts"
import type { Prompts } from "../../../application/Prompts.ts"
import type { MigrationReport, SchemaStatus } from "../../../application/ports/SchemaStatus.ts"
import type { CommandError } from "./output/CommandError.ts"

/** The operations that commands need from the program that runs them. */
export class CommandOperations extends Context.Service<
  CommandOperations,
  {
    /** Serves the API until a stop signal arrives. `demo` adds a demo workspace to an empty embedded database. */
    readonly serve: (options: { readonly demo: boolean }) => Effect.Effect<void, CommandError>
    readonly migrate: Effect.Effect<MigrationReport, CommandError>
    /** Reads the state of the database schema, and changes nothing. */
    readonly schemaStatus: Effect.Effect<SchemaStatus, CommandError>
    /**
     * Opens the database, which stays open until the scope closes. If `migrate` is true, migrates the schema;
     * otherwise, fails if the schema is not current.
     */
    readonly openUseCases: (
      migrate: boolean
    ) => Effect.Effect<Context.Context<Administration | Prompts>, CommandError, Scope.Scope>
  }
>()("prompt-retrieval/adapters/inbound/cli/CommandOperations") {}
