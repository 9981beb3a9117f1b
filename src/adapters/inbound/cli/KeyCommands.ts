import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { IssuedKey } from "../../../application/Administration.ts"
import type { KeyInfo } from "../../../application/ports/WorkspaceStore.ts"
import { keySummary } from "../../../domain/ApiKey.ts"
import { expectEmail, isEmail, json, keyArgument, workspace } from "./Flags.ts"
import { handleAndPrint } from "./Handler.ts"
import { administer } from "./Operations.ts"
import { formatTable } from "./Output.ts"

/** Converts a key to its listing, which shows only the ends of the key (specification 5.4). */
const toListedKey = ({ key_start, key_end, id, ...info }: KeyInfo) => ({
  id,
  key: keySummary({ key_start, key_end }),
  ...info
})
type ListedKey = ReturnType<typeof toListedKey>

const formatKeys = (keys: ReadonlyArray<ListedKey>): string =>
  formatTable(
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

const formatIssuedKey = ({ key }: IssuedKey): string => `${key}

This key is shown only once: store it where your application reads its secrets, such as an environment variable.
Send it as: Authorization: Bearer <key>`

const issue = Command.make(
  "issue",
  {
    workspace,
    user: Flag.String("user").pipe(
      Flag.withDescription("Email of the key's owner; the user is created if it does not exist"),
      Flag.filter(isEmail, expectEmail)
    ),
    name: Flag.String("name").pipe(Flag.withDefault(""), Flag.withDescription("What the key is for")),
    json
  },
  handleAndPrint(
    ({ workspace, user, name }) => administer(({ issueKey }) => issueKey(workspace, user, name)),
    formatIssuedKey
  )
).pipe(Command.withDescription("Issue an API key and print it (shown only once)"))

const list = Command.make(
  "list",
  { workspace, json },
  handleAndPrint(
    ({ workspace }) => administer(({ keys }) => Effect.map(keys(workspace), (keys) => keys.map(toListedKey))),
    formatKeys
  )
).pipe(Command.withDescription("List a workspace's keys"))

const revoke = Command.make(
  "revoke",
  { key: keyArgument, json },
  handleAndPrint(
    ({ key }) => administer(({ revokeKey }) => Effect.map(revokeKey(key), toListedKey)),
    (key) => formatKeys([key])
  )
).pipe(Command.withDescription("Revoke an API key permanently"))

/** `keys issue`, `list` and `revoke`. */
export const keyCommands = Command.make("keys").pipe(
  Command.withDescription("Issue, list and revoke API keys"),
  Command.withSubcommands([issue, list, revoke])
)
