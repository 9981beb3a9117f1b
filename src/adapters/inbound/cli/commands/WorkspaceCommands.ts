import { createInterface } from "node:readline"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { type WorkspaceInfo, WorkspaceNotFound } from "../../../../application/ports/WorkspaceStore.ts"
import { BillingStatus, Tier } from "../../../../domain/Billing.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { makeCommand, makeGroup, withHelp } from "../CommandBuilders.ts"
import { booleanFlag, nameRule, optional } from "../input/Flags.ts"
import { openDatabase, openWorkspace } from "../OpenDatabase.ts"
import { CommandError, UsageError, warn } from "../output/CommandError.ts"
import { makeTableFormatter, pluralize, toPrintable } from "../output/Output.ts"

const formatWorkspaces = makeTableFormatter<WorkspaceInfo>({
  ID: "id",
  NAME: "name",
  TIER: "tier",
  BILLING: "billing_status"
})

const tier = Flag.Literals("tier", Tier.literals)

const workspaceArgument = Argument.String("workspace").pipe(
  Argument.withDescription("Id or unique name of the workspace"),
  Argument.filter(...nameRule)
)

const list = makeCommand(
  "list",
  {},
  () => Effect.flatMap(openDatabase(), ({ workspaces }) => workspaces),
  formatWorkspaces
).pipe(withHelp("List all workspaces", "workspaces list"))

/** Warns if another workspace has the same name as the given workspace. */
const warnIfNameIsTaken = Effect.fnUntraced(function* (
  workspaces: ReadonlyArray<WorkspaceInfo>,
  { id, name }: WorkspaceInfo
) {
  const other = workspaces.find((workspace) => workspace.name === name && workspace.id !== id)
  if (other !== undefined)
    yield* warn(
      toPrintable(
        `workspace ${other.id} has the name ${name}, too, so commands accept only the ids of both; to change a name: 'prompt-retrieval workspaces rename ${id} NAME'`
      )
    )
})

const create = makeCommand(
  "create",
  {
    name: Flag.String("name").pipe(Flag.withDescription("Name of the workspace"), Flag.filter(...nameRule)),
    tier: tier.pipe(
      Flag.withDefault("free" as const),
      Flag.withDescription("Tier of the workspace; Free has no API access (default: free)")
    )
  },
  Effect.fnUntraced(function* ({ name, tier }) {
    const { workspaces, createWorkspace } = yield* openDatabase(true)
    const created = yield* createWorkspace(name, tier)
    yield* warnIfNameIsTaken(yield* workspaces, created)
    return created
  }),
  ({ id }) => id
).pipe(withHelp("Create an empty workspace and print its id", "workspaces create --name Acme --tier solo"))

const set = makeCommand(
  "set",
  {
    workspace: workspaceArgument,
    tier: optional(tier, "New tier"),
    billing: optional(Flag.Literals("billing", BillingStatus.literals), "New billing status")
  },
  Effect.fnUntraced(function* ({ workspace, tier, billing }) {
    if (tier === undefined && billing === undefined)
      return yield* new UsageError({ message: "nothing to set: give --tier, --billing or both" })
    const { setWorkspace, id } = yield* openWorkspace(workspace)
    return yield* setWorkspace(id, { tier, billing_status: billing })
  }),
  (workspace) => formatWorkspaces([workspace])
).pipe(
  withHelp(
    "Change a workspace's tier or billing status",
    "workspaces set Acme --tier team",
    "workspaces set Acme --billing past_due"
  )
)

const rename = makeCommand(
  "rename",
  {
    workspace: workspaceArgument,
    name: Argument.String("name").pipe(
      Argument.withDescription("New name of the workspace"),
      Argument.filter(...nameRule)
    )
  },
  Effect.fnUntraced(function* ({ workspace, name }) {
    const { workspaces, setWorkspace, id } = yield* openWorkspace(workspace)
    const renamed = yield* setWorkspace(id, { name })
    yield* warnIfNameIsTaken(yield* workspaces, renamed)
    return renamed
  }),
  (workspace) => formatWorkspaces([workspace])
).pipe(withHelp("Rename a workspace", 'workspaces rename Acme "Acme Europe"'))

/**
 * Asks a question on the terminal. Returns the answer, or an empty string after Ctrl+D or Ctrl+C. With the service
 * `Terminal`, the question would go to stdout, and Ctrl+C would end the command with exit code 130.
 */
const ask = (question: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const terminal = createInterface({ input: process.stdin, output: process.stderr })
    terminal.once("close", () => resume(Effect.succeed("")))
    terminal.question(question, (line) => {
      resume(Effect.succeed(line))
      terminal.close()
    })
    return Effect.sync(() => terminal.close())
  })

/** Asks the operator to type the name of the workspace, or the id if the name is blank. Fails after any other answer. */
const confirmDeletion = Effect.fnUntraced(function* (
  workspaces: ReadonlyArray<WorkspaceInfo>,
  workspace: WorkspaceId
) {
  const found = workspaces.find(({ id }) => id === workspace)
  if (found === undefined) return yield* Effect.fail(WorkspaceNotFound)
  const name = found.name.trim() === "" ? found.id : found.name
  const answer = yield* ask(
    toPrintable(
      `This deletes workspace ${name} with all of its prompts, versions and keys. Type ${name} to go on: `
    )
  )
  if (answer.trim() !== name.trim())
    return yield* new CommandError({ message: "not confirmed; nothing was deleted" })
})

const remove = makeCommand(
  "delete",
  {
    workspace: workspaceArgument,
    yes: booleanFlag("yes", "Delete without asking for the name of the workspace")
  },
  Effect.fnUntraced(function* ({ workspace, yes }) {
    if (!yes && !(process.stdin.isTTY && process.stderr.isTTY))
      return yield* new UsageError({ message: "to delete without a terminal, add --yes" })
    const { workspaces, deleteWorkspace, id } = yield* openWorkspace(workspace)
    if (!yes) yield* confirmDeletion(yield* workspaces, id)
    return yield* deleteWorkspace(id)
  }),
  ({ id, name, prompts, api_keys }) =>
    toPrintable(
      `Deleted workspace ${id} (${name}) with ${pluralize(prompts, "prompt")} and ${pluralize(api_keys, "key")}`
    )
).pipe(withHelp("Delete a workspace with its content and keys", "workspaces delete Acme --yes"))

export const workspaceCommands = makeGroup("workspaces", "List, create, change and delete workspaces", [
  list,
  create,
  set,
  rename,
  remove
])
