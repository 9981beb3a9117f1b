import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { AuditEvent } from "../../../../domain/AuditEvent.ts"
import { makeCommand, makeGroup, withHelp } from "../CommandBuilders.ts"
import { explicitWorkspace, optional } from "../input/Flags.ts"
import { openDatabase, openWorkspace } from "../OpenDatabase.ts"
import { makeTableFormatter } from "../output/Output.ts"

const defaultLimit = 50
const maxLimit = 10_000

const formatEvents = makeTableFormatter<AuditEvent>({
  TIME: "at",
  ACTOR: "actor",
  ACTION: "action",
  WORKSPACE: "workspace_id",
  SUBJECT: "subject",
  DETAILS: ({ details }) =>
    Object.entries(details)
      .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
      .join(" ")
})

const list = makeCommand(
  "list",
  {
    workspace: optional(
      explicitWorkspace,
      "Id or unique name of the workspace; the id if it is deleted (default: events of all workspaces and of users)"
    ),
    limit: Flag.Int("limit").pipe(
      Flag.withDefault(defaultLimit),
      Flag.withDescription(`How many events to list, 1 to ${maxLimit} (default: ${defaultLimit})`),
      Flag.filter(
        (limit) => limit >= 1 && limit <= maxLimit,
        () => `an integer from 1 to ${maxLimit}`
      )
    )
  },
  ({ workspace, limit }) =>
    workspace === undefined
      ? Effect.flatMap(openDatabase(), ({ auditEvents }) => auditEvents({ limit }))
      : Effect.flatMap(openWorkspace(workspace), ({ auditEvents, id }) =>
          auditEvents({ workspace: id, limit })
        ),
  formatEvents
).pipe(
  withHelp(
    "List administrative changes, the latest first",
    "audit list",
    "audit list --workspace Acme --limit 10"
  )
)

export const auditCommands = makeGroup("audit", "List who changed workspaces, users and keys", [list])
