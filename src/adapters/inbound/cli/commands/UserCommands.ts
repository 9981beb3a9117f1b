import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { User } from "../../../../domain/Workspace.ts"
import { makeCommand, makeGroup, withHelp } from "../CommandBuilders.ts"
import { booleanFlag, emailRule, workspace } from "../input/Flags.ts"
import { openDatabase, openWorkspace } from "../OpenDatabase.ts"
import { makeTableFormatter, pluralize, toPrintable } from "../output/Output.ts"

const formatUsers = makeTableFormatter<User>({
  ID: "id",
  EMAIL: "email",
  "MUST RESET": ({ must_reset_password }) => (must_reset_password ? "on" : "off")
})

const list = makeCommand(
  "list",
  { workspace },
  ({ workspace }) => Effect.flatMap(openWorkspace(workspace), ({ users, id }) => users(id)),
  formatUsers
).pipe(withHelp("List the owners of a workspace's keys", "users list --workspace Acme"))

const email = Argument.String("email").pipe(
  Argument.withDescription("Email of the user, in any case"),
  Argument.filter(...emailRule)
)

const set = makeCommand(
  "set",
  {
    email,
    mustReset: Flag.Literals("must-reset", ["on", "off"]).pipe(
      Flag.withDescription("Whether the user must reset the password before the user's keys work again")
    )
  },
  ({ email, mustReset }) =>
    Effect.flatMap(openDatabase(), ({ setUser }) => setUser(email, mustReset === "on")),
  (user) => formatUsers([user])
).pipe(
  withHelp(
    "Require a user to reset the password, or lift the requirement",
    "users set ada@example.com --must-reset on"
  )
)

const remove = makeCommand(
  "delete",
  {
    email,
    yes: booleanFlag("yes", "Delete the user even if keys of the user are neither revoked nor expired")
  },
  ({ email, yes }) => Effect.flatMap(openDatabase(), ({ deleteUser }) => deleteUser(email, yes)),
  ({ email, api_keys }) => toPrintable(`Deleted user ${email} with ${pluralize(api_keys, "key")}`)
).pipe(
  withHelp(
    "Delete a user and the user's keys",
    "users delete ada@example.com",
    "users delete ada@example.com --yes"
  )
)

export const userCommands = makeGroup(
  "users",
  "List and delete users, and require them to reset their passwords",
  [list, set, remove]
)
