import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { Administration } from "../../../application/Administration.ts"
import type { KeyInfo } from "../../../application/ports/WorkspaceStore.ts"
import { ApiKeyId, keySummary } from "../../../domain/ApiKey.ts"
import { parseUuid } from "../../../domain/Uuid.ts"
import { CommandError } from "./CommandError.ts"
import { Email, IdText, json, workspace } from "./Flags.ts"
import type { Operations } from "./Operations.ts"
import { print, table, unavailable, workspaceNotFound } from "./Output.ts"

/** A key as its listing shows it (SPEC.md section 5.4). */
const listed = ({ key_start, key_end, id, ...info }: KeyInfo) => ({
  id,
  key: keySummary({ key_start, key_end }),
  ...info
})

const show = (keys: ReadonlyArray<ReturnType<typeof listed>>): string =>
  table(
    ["ID", "KEY", "NAME", "OWNER", "CREATED", "LAST USED", "REVOKED"],
    keys.map(({ id, key, name, owner, created_at, last_used_at, revoked_at }) => [
      id,
      key,
      name,
      owner,
      created_at,
      last_used_at ?? "-",
      revoked_at ?? "-"
    ])
  )

/** `keys issue`, `list` and `revoke`. */
export const keyCommands = (operations: Operations) => {
  const administration = operations.administration({ migrate: false })

  const issue = Command.make(
    "issue",
    {
      workspace,
      user: Flag.String("user").pipe(
        Flag.withDescription("Email of the key's owner; an unknown one becomes a user"),
        Flag.withSchema(Email)
      ),
      name: Flag.String("name").pipe(Flag.withDefault(""), Flag.withDescription("What the key is for")),
      json
    },
    Effect.fnUntraced(function* ({ workspace, user, name, json }) {
      const issued = yield* Effect.flatMap(Administration, ({ issueKey }) =>
        issueKey(workspace, user, name)
      ).pipe(
        Effect.catchTags({
          WorkspaceNotFound: () => Effect.fail(workspaceNotFound(workspace)()),
          Unavailable: () => Effect.fail(unavailable())
        }),
        Effect.provide(administration)
      )
      yield* print(
        json,
        issued,
        `${issued.key}\n\nThis key is shown only now: put it where your application reads its secrets, such as an environment variable.\nSend it as: Authorization: Bearer <key>`
      )
    })
  ).pipe(Command.withDescription("Issue an API key and print it, this once"))

  const list = Command.make(
    "list",
    { workspace, json },
    Effect.fnUntraced(function* ({ workspace, json }) {
      const keys = yield* Effect.flatMap(Administration, ({ keys }) => keys(workspace)).pipe(
        Effect.map((keys) => keys.map(listed)),
        Effect.catchTags({
          WorkspaceNotFound: () => Effect.fail(workspaceNotFound(workspace)()),
          Unavailable: () => Effect.fail(unavailable())
        }),
        Effect.provide(administration)
      )
      yield* print(json, keys, show(keys))
    })
  ).pipe(Command.withDescription("List a workspace's keys"))

  const revoke = Command.make(
    "revoke",
    {
      id: Argument.String("key-id").pipe(
        Argument.withDescription("Id of the key, as keys list shows it"),
        Argument.withSchema(IdText)
      ),
      json
    },
    Effect.fnUntraced(function* ({ id, json }) {
      const key = ApiKeyId.make(parseUuid(id)!)
      const revoked = yield* Effect.flatMap(Administration, ({ revokeKey }) => revokeKey(key)).pipe(
        Effect.map(listed),
        Effect.catchTags({
          KeyNotFound: () =>
            Effect.fail(new CommandError({ message: `there is no key ${key}: see keys list` })),
          Unavailable: () => Effect.fail(unavailable())
        }),
        Effect.provide(administration)
      )
      yield* print(json, revoked, show([revoked]))
    })
  ).pipe(Command.withDescription("Revoke an API key for good"))

  return Command.make("keys").pipe(
    Command.withDescription("Issue, list and revoke API keys"),
    Command.withSubcommands([issue, list, revoke])
  )
}
