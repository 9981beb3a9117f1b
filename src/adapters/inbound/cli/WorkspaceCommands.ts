import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { WorkspaceInfo } from "../../../application/ports/WorkspaceStore.ts"
import { BillingStatus } from "../../../domain/Billing.ts"
import { UsageError } from "./CommandError.ts"
import { expectWorkspaceName, isWorkspaceName, json, optional, tier, workspaceArgument } from "./Flags.ts"
import { handleAndPrint } from "./Handler.ts"
import { administer } from "./Operations.ts"
import { formatTable } from "./Output.ts"

const formatWorkspaces = (workspaces: ReadonlyArray<WorkspaceInfo>): string =>
  formatTable(
    ["ID", "NAME", "TIER", "BILLING"],
    workspaces.map(({ id, name, tier, billing_status }) => [id, name, tier, billing_status])
  )

const list = Command.make(
  "list",
  { json },
  handleAndPrint(() => administer(({ workspaces }) => workspaces), formatWorkspaces)
).pipe(Command.withDescription("List all workspaces"))

const create = Command.make(
  "create",
  {
    name: Flag.String("name").pipe(
      Flag.withDescription("Name of the workspace"),
      Flag.filter(isWorkspaceName, expectWorkspaceName)
    ),
    tier: tier.pipe(
      Flag.withDefault("free" as const),
      Flag.withDescription("Tier of the workspace; Free has no API access")
    ),
    json
  },
  handleAndPrint(
    ({ name, tier }) => administer(({ createWorkspace }) => createWorkspace(name, tier)),
    (workspace) => formatWorkspaces([workspace])
  )
).pipe(Command.withDescription("Create an empty workspace"))

const set = Command.make(
  "set",
  {
    workspace: workspaceArgument,
    tier: optional(tier).pipe(Flag.withDescription("New tier")),
    billing: optional(Flag.Literals("billing", BillingStatus.literals)).pipe(
      Flag.withDescription("New billing status")
    ),
    json
  },
  handleAndPrint(
    Effect.fnUntraced(function* ({ workspace, tier, billing }) {
      if (tier === undefined && billing === undefined)
        return yield* new UsageError({ message: "nothing to set: give --tier, --billing or both" })
      return yield* administer(({ setWorkspace }) =>
        setWorkspace(workspace, { tier, billing_status: billing })
      )
    }),
    (workspace) => formatWorkspaces([workspace])
  )
).pipe(Command.withDescription("Change a workspace's tier or billing status"))

/** `workspaces list`, `create` and `set`. */
export const workspaceCommands = Command.make("workspaces").pipe(
  Command.withDescription("List, create and change workspaces"),
  Command.withSubcommands([list, create, set])
)
