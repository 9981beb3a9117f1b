import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { DeletedUser, UserInfo } from "../../../../application/ports/WorkspaceStore.ts"
import { booleanFlag, describeEmail, isEmail, json, workspace } from "../input/Flags.ts"
import { handleAndPrint } from "../CommandHandler.ts"
import { administer, administerWorkspace } from "../WithDatabase.ts"
import { formatTable, pluralize, toPrintable } from "../output/Output.ts"

const formatUsers = (users: ReadonlyArray<UserInfo>): string =>
  formatTable(
    ["ID", "EMAIL", "MUST RESET"],
    users.map(({ id, email, must_reset_password }) => [id, email, must_reset_password ? "on" : "off"])
  )

const list = Command.make(
  "list",
  { workspace, json },
  handleAndPrint(({ workspace }) => administerWorkspace(workspace, ({ users }, id) => users(id)), formatUsers)
).pipe(
  Command.withDescription("List the owners of a workspace's keys"),
  Command.withExamples([{ command: "prompt-retrieval users list --workspace Acme" }])
)

const email = Argument.String("email").pipe(
  Argument.withDescription("Email of the user, in any case"),
  Argument.filter(isEmail, describeEmail)
)

const set = Command.make(
  "set",
  {
    email,
    mustReset: Flag.Literals("must-reset", ["on", "off"]).pipe(
      Flag.withDescription("Whether the user must reset the password before the user's keys work again")
    ),
    json
  },
  handleAndPrint(
    ({ email, mustReset }) => administer(({ setUser }) => setUser(email, mustReset === "on")),
    (user) => formatUsers([user])
  )
).pipe(
  Command.withDescription("Require a user to reset the password, or lift the requirement"),
  Command.withExamples([{ command: "prompt-retrieval users set ada@example.com --must-reset on" }])
)

const describeDeletion = ({ email, api_keys }: DeletedUser): string =>
  toPrintable(`Deleted user ${email} with ${pluralize(api_keys, "key")}`)

const remove = Command.make(
  "delete",
  {
    email,
    yes: booleanFlag("yes", "Delete the user even if keys of the user are neither revoked nor expired"),
    json
  },
  handleAndPrint(({ email, yes }) => administer(({ deleteUser }) => deleteUser(email, yes)), describeDeletion)
).pipe(
  Command.withDescription("Delete a user and the user's keys"),
  Command.withExamples([
    { command: "prompt-retrieval users delete ada@example.com" },
    { command: "prompt-retrieval users delete ada@example.com --yes" }
  ])
)

export const userCommands = Command.make("users").pipe(
  Command.withDescription("List and delete users, and require them to reset their passwords"),
  Command.withSubcommands([list, set, remove])
)
