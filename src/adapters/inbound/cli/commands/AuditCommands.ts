import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { AuditEvent } from "../../../../domain/AuditEvent.ts"
import { explicitWorkspace, json, optional } from "../input/Flags.ts"
import { handleAndPrint } from "../CommandHandler.ts"
import { administer, administerWorkspace } from "../WithDatabase.ts"
import { formatTable } from "../output/Output.ts"

const defaultLimit = 50
const maxLimit = 10_000

const formatDetails = (details: AuditEvent["details"]): string =>
  Object.entries(details)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(" ")

const formatEvents = (events: ReadonlyArray<AuditEvent>): string =>
  formatTable(
    ["TIME", "ACTOR", "ACTION", "WORKSPACE", "SUBJECT", "DETAILS"],
    events.map(({ at, actor, action, workspace_id, subject, details }) => [
      at,
      actor,
      action,
      workspace_id ?? "-",
      subject,
      formatDetails(details)
    ])
  )

const list = Command.make(
  "list",
  {
    workspace: optional(explicitWorkspace).pipe(
      Flag.withDescription(
        "Id or unique name of the workspace; the id if it is deleted (default: events of all workspaces and of users)"
      )
    ),
    limit: Flag.Int("limit").pipe(
      Flag.withDefault(defaultLimit),
      Flag.withDescription(`How many events to list, 1 to ${maxLimit} (default: ${defaultLimit})`),
      Flag.filter(
        (limit) => limit >= 1 && limit <= maxLimit,
        () => `an integer from 1 to ${maxLimit}`
      )
    ),
    json
  },
  handleAndPrint(
    ({ workspace, limit }) =>
      workspace === undefined
        ? administer(({ auditEvents }) => auditEvents({ limit }))
        : administerWorkspace(workspace, ({ auditEvents }, id) => auditEvents({ workspace: id, limit })),
    formatEvents
  )
).pipe(
  Command.withDescription("List administrative changes, the latest first"),
  Command.withExamples([
    { command: "prompt-retrieval audit list" },
    { command: "prompt-retrieval audit list --workspace Acme --limit 10" }
  ])
)

export const auditCommands = Command.make("audit").pipe(
  Command.withDescription("List who changed workspaces, users and keys"),
  Command.withSubcommands([list])
)
