import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import {
  type DeletedWorkspace,
  type WorkspaceInfo,
  WorkspaceNotFound
} from "../../../../application/ports/WorkspaceStore.ts"
import { BillingStatus } from "../../../../domain/Billing.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { UsageError } from "../output/CommandError.ts"
import { confirmByTyping, isInteractive } from "../input/Confirmation.ts"
import { booleanFlag, describeName, isName, json, optional, tier, workspaceArgument } from "../input/Flags.ts"
import { handleAndPrint } from "../CommandHandler.ts"
import { administer, administerWorkspace } from "../WithDatabase.ts"
import { formatTable, pluralize, toPrintable, warn } from "../output/Output.ts"

const formatWorkspaces = (workspaces: ReadonlyArray<WorkspaceInfo>): string =>
  formatTable(
    ["ID", "NAME", "TIER", "BILLING"],
    workspaces.map(({ id, name, tier, billing_status }) => [id, name, tier, billing_status])
  )

const list = Command.make(
  "list",
  { json },
  handleAndPrint(() => administer(({ workspaces }) => workspaces), formatWorkspaces)
).pipe(
  Command.withDescription("List all workspaces"),
  Command.withExamples([{ command: "prompt-retrieval workspaces list" }])
)

/** Warns if another workspace has the name that a workspace just got. */
const warnIfNameIsTaken = Effect.fnUntraced(function* (
  { workspaces }: Administration["Service"],
  { id, name }: WorkspaceInfo,
  json: boolean
) {
  const other = (yield* workspaces).find((workspace) => workspace.name === name && workspace.id !== id)
  if (other !== undefined)
    yield* warn(
      json,
      toPrintable(
        `workspace ${other.id} has the name ${name}, too, so commands accept only the ids of both; to change a name: 'prompt-retrieval workspaces rename ${id} NAME'`
      )
    )
})

const create = Command.make(
  "create",
  {
    name: Flag.String("name").pipe(
      Flag.withDescription("Name of the workspace"),
      Flag.filter(isName, describeName)
    ),
    tier: tier.pipe(
      Flag.withDefault("free" as const),
      Flag.withDescription("Tier of the workspace; Free has no API access (default: free)")
    ),
    json
  },
  handleAndPrint(
    ({ name, tier, json }) =>
      administer(
        (administration) =>
          Effect.tap(administration.createWorkspace(name, tier), (created) =>
            warnIfNameIsTaken(administration, created, json)
          ),
        { migrate: true }
      ),
    ({ id }) => id
  )
).pipe(
  Command.withDescription("Create an empty workspace and print its id"),
  Command.withExamples([{ command: "prompt-retrieval workspaces create --name Acme --tier solo" }])
)

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
      return yield* administerWorkspace(workspace, ({ setWorkspace }, id) =>
        setWorkspace(id, { tier, billing_status: billing })
      )
    }),
    (workspace) => formatWorkspaces([workspace])
  )
).pipe(
  Command.withDescription("Change a workspace's tier or billing status"),
  Command.withExamples([
    { command: "prompt-retrieval workspaces set Acme --tier team" },
    { command: "prompt-retrieval workspaces set Acme --billing past_due" }
  ])
)

const rename = Command.make(
  "rename",
  {
    workspace: workspaceArgument,
    name: Argument.String("name").pipe(
      Argument.withDescription("New name of the workspace"),
      Argument.filter(isName, describeName)
    ),
    json
  },
  handleAndPrint(
    ({ workspace, name, json }) =>
      administerWorkspace(workspace, (administration, id) =>
        Effect.tap(administration.setWorkspace(id, { name }), (renamed) =>
          warnIfNameIsTaken(administration, renamed, json)
        )
      ),
    (workspace) => formatWorkspaces([workspace])
  )
).pipe(
  Command.withDescription("Rename a workspace"),
  Command.withExamples([{ command: 'prompt-retrieval workspaces rename Acme "Acme Europe"' }])
)

/** Asks the operator to type the name of the workspace, or the id if the name is blank. */
const confirmDeletion = Effect.fnUntraced(function* (
  { workspaces }: Administration["Service"],
  workspace: WorkspaceId
) {
  const found = (yield* workspaces).find(({ id }) => id === workspace)
  if (found === undefined) return yield* Effect.fail(WorkspaceNotFound)
  const name = found.name.trim() === "" ? found.id : found.name
  yield* confirmByTyping(
    toPrintable(
      `This deletes workspace ${name} with all of its prompts, versions and keys. Type ${name} to go on: `
    ),
    name
  )
})

const describeDeletion = ({ id, name, prompts, api_keys }: DeletedWorkspace): string =>
  toPrintable(
    `Deleted workspace ${id} (${name}) with ${pluralize(prompts, "prompt")} and ${pluralize(api_keys, "key")}`
  )

const remove = Command.make(
  "delete",
  {
    workspace: workspaceArgument,
    yes: booleanFlag("yes", "Delete without asking for the name of the workspace"),
    json
  },
  handleAndPrint(
    Effect.fnUntraced(function* ({ workspace, yes }) {
      if (!yes && !isInteractive())
        return yield* new UsageError({ message: "to delete without a terminal, add --yes" })
      return yield* administerWorkspace(workspace, (administration, id) =>
        Effect.andThen(
          yes ? Effect.void : confirmDeletion(administration, id),
          administration.deleteWorkspace(id)
        )
      )
    }),
    describeDeletion
  )
).pipe(
  Command.withDescription("Delete a workspace with its content and keys"),
  Command.withExamples([{ command: "prompt-retrieval workspaces delete Acme --yes" }])
)

export const workspaceCommands = Command.make("workspaces").pipe(
  Command.withDescription("List, create, change and delete workspaces"),
  Command.withSubcommands([list, create, set, rename, remove])
)
