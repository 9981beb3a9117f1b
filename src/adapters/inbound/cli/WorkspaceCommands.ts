import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Administration } from "../../../application/Administration.ts"
import type { WorkspaceInfo } from "../../../application/ports/WorkspaceStore.ts"
import { BillingStatus } from "../../../domain/Billing.ts"
import { WorkspaceId } from "../../../domain/Prompt.ts"
import { parseUuid } from "../../../domain/Uuid.ts"
import { UsageError } from "./CommandError.ts"
import { IdText, json, tier } from "./Flags.ts"
import type { Operations } from "./Operations.ts"
import { print, table, unavailable, workspaceNotFound } from "./Output.ts"

const show = (workspaces: ReadonlyArray<WorkspaceInfo>): string =>
  table(
    ["ID", "NAME", "TIER", "BILLING"],
    workspaces.map(({ id, name, tier, billing_status }) => [id, name, tier, billing_status])
  )

/** `workspaces list`, `create` and `set`. */
export const workspaceCommands = (operations: Operations) => {
  const administration = operations.administration({ migrate: false })

  const list = Command.make(
    "list",
    { json },
    Effect.fnUntraced(function* ({ json }) {
      const workspaces = yield* Effect.flatMap(Administration, ({ workspaces }) => workspaces).pipe(
        Effect.mapError(unavailable),
        Effect.provide(administration)
      )
      yield* print(json, workspaces, show(workspaces))
    })
  ).pipe(Command.withDescription("List every workspace"))

  const create = Command.make(
    "create",
    {
      name: Flag.String("name").pipe(
        Flag.withDescription("Its name"),
        Flag.withSchema(
          Schema.String.check(
            Schema.isMinLength(1, { message: "must not be empty" }),
            Schema.isMaxLength(256, { message: "must be at most 256 characters" })
          )
        )
      ),
      tier: tier.pipe(
        Flag.withDefault("free" as const),
        Flag.withDescription("Its plan; a Free workspace has no API access")
      ),
      json
    },
    Effect.fnUntraced(function* ({ name, tier, json }) {
      const made = yield* Effect.flatMap(Administration, ({ createWorkspace }) =>
        createWorkspace(name, tier)
      ).pipe(Effect.mapError(unavailable), Effect.provide(administration))
      yield* print(json, made, show([made]))
    })
  ).pipe(Command.withDescription("Make a workspace without content"))

  const set = Command.make(
    "set",
    {
      id: Argument.String("id").pipe(
        Argument.withDescription("Id of the workspace"),
        Argument.withSchema(IdText)
      ),
      tier: tier.pipe(Flag.optional, Flag.withDescription("Its new plan")),
      billing: Flag.Literals("billing", BillingStatus.literals).pipe(
        Flag.optional,
        Flag.withDescription("Its new state of billing")
      ),
      json
    },
    Effect.fnUntraced(function* ({ id, tier, billing, json }) {
      if (Option.isNone(tier) && Option.isNone(billing))
        return yield* new UsageError({ message: "nothing to set: give --tier, --billing or both" })
      const workspace = WorkspaceId.make(parseUuid(id)!)
      const changed = yield* Effect.flatMap(Administration, ({ setWorkspace }) =>
        setWorkspace(workspace, {
          tier: Option.getOrUndefined(tier),
          billing_status: Option.getOrUndefined(billing)
        })
      ).pipe(
        Effect.catchTags({
          WorkspaceNotFound: () => Effect.fail(workspaceNotFound(workspace)()),
          Unavailable: () => Effect.fail(unavailable())
        }),
        Effect.provide(administration)
      )
      yield* print(json, changed, show([changed]))
    })
  ).pipe(Command.withDescription("Change a workspace's plan or billing"))

  return Command.make("workspaces").pipe(
    Command.withDescription("List, make and change workspaces"),
    Command.withSubcommands([list, create, set])
  )
}
