import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { UserInfo } from "../../../application/ports/WorkspaceStore.ts"
import { expectEmail, isEmail, json, workspace } from "./Flags.ts"
import { handleAndPrint } from "./Handler.ts"
import { administer } from "./Operations.ts"
import { formatTable } from "./Output.ts"

const formatUsers = (users: ReadonlyArray<UserInfo>): string =>
  formatTable(
    ["ID", "EMAIL", "MUST RESET"],
    users.map(({ id, email, must_reset_password }) => [id, email, must_reset_password ? "on" : "off"])
  )

const list = Command.make(
  "list",
  { workspace, json },
  handleAndPrint(({ workspace }) => administer(({ users }) => users(workspace)), formatUsers)
).pipe(Command.withDescription("List the owners of a workspace's keys"))

const set = Command.make(
  "set",
  {
    email: Argument.String("email").pipe(
      Argument.withDescription("Email of the user, in any case"),
      Argument.filter(isEmail, expectEmail)
    ),
    mustReset: Flag.Literals("must-reset", ["on", "off"]).pipe(
      Flag.withDescription("Whether the user must reset the password before the user's keys work again")
    ),
    json
  },
  handleAndPrint(
    ({ email, mustReset }) => administer(({ setUser }) => setUser(email, mustReset === "on")),
    (user) => formatUsers([user])
  )
).pipe(Command.withDescription("Require a user to reset the password, or lift the requirement"))

/** `users list` and `set`. */
export const userCommands = Command.make("users").pipe(
  Command.withDescription("List users, and require them to reset their passwords"),
  Command.withSubcommands([list, set])
)
