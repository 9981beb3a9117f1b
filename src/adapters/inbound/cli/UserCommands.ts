import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { Administration } from "../../../application/Administration.ts"
import type { UserInfo } from "../../../application/ports/WorkspaceStore.ts"
import { CommandError } from "./CommandError.ts"
import { Email, json, workspace } from "./Flags.ts"
import type { Operations } from "./Operations.ts"
import { print, printable, table, unavailable, workspaceNotFound } from "./Output.ts"

const show = (users: ReadonlyArray<UserInfo>): string =>
  table(
    ["ID", "EMAIL", "MUST RESET"],
    users.map(({ id, email, must_reset_password }) => [id, email, must_reset_password ? "on" : "off"])
  )

/** `users list` and `set`. */
export const userCommands = (operations: Operations) => {
  const administration = operations.administration({ migrate: false })

  const list = Command.make(
    "list",
    { workspace, json },
    Effect.fnUntraced(function* ({ workspace, json }) {
      const users = yield* Effect.flatMap(Administration, ({ users }) => users(workspace)).pipe(
        Effect.catchTags({
          WorkspaceNotFound: () => Effect.fail(workspaceNotFound(workspace)()),
          Unavailable: () => Effect.fail(unavailable())
        }),
        Effect.provide(administration)
      )
      yield* print(json, users, show(users))
    })
  ).pipe(Command.withDescription("List the owners of a workspace's keys"))

  const set = Command.make(
    "set",
    {
      email: Argument.String("email").pipe(
        Argument.withDescription("The user's email, in any case"),
        Argument.withSchema(Email)
      ),
      mustReset: Flag.Literals("must-reset", ["on", "off"]).pipe(
        Flag.withDescription("Whether the user must reset the password before any of their keys works again")
      ),
      json
    },
    Effect.fnUntraced(function* ({ email, mustReset, json }) {
      const changed = yield* Effect.flatMap(Administration, ({ setUser }) =>
        setUser(email, mustReset === "on")
      ).pipe(
        Effect.catchTags({
          UserNotFound: () =>
            Effect.fail(
              new CommandError({ message: `there is no user ${printable(email)}: see users list` })
            ),
          Unavailable: () => Effect.fail(unavailable())
        }),
        Effect.provide(administration)
      )
      yield* print(json, changed, show([changed]))
    })
  ).pipe(Command.withDescription("Force a user to reset their password, or lift that"))

  return Command.make("users").pipe(
    Command.withDescription("List users, and force them to reset their passwords"),
    Command.withSubcommands([list, set])
  )
}
