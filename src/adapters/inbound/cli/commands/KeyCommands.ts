import * as Clock from "effect/Clock"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { IssuedKey } from "../../../../application/Administration.ts"
import type { KeyInfo, WorkspaceInfo } from "../../../../application/ports/WorkspaceStore.ts"
import { formatKeySummary } from "../../../../domain/ApiKey.ts"
import { paidTiers } from "../../../../domain/Billing.ts"
import { fitsName, sizes } from "../../../../domain/Sizes.ts"
import { toTimestamp } from "../../../../domain/Timestamp.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { makeCommand, makeGroup, withHelp } from "../CommandBuilders.ts"
import { emailRule, keyArgument, optional, timeFlag, workspace, workspaceFor } from "../input/Flags.ts"
import { openKey, openWorkspace } from "../OpenDatabase.ts"
import { warn } from "../output/CommandError.ts"
import { makeTableFormatter, quote } from "../output/Output.ts"

/** Converts a key for the output, which shows only the key's first and last digits (specification 5.4). */
const toListedKey = ({ key_start, key_end, id, ...info }: KeyInfo) => ({
  id,
  key: formatKeySummary({ key_start, key_end }),
  ...info
})
type ListedKey = ReturnType<typeof toListedKey>

const formatKeys = makeTableFormatter<ListedKey>({
  ID: "id",
  KEY: "key",
  NAME: "name",
  OWNER: "owner",
  CREATED: "created_at",
  EXPIRES: "expires_at",
  "LAST USED": "last_used_at",
  REVOKED: "revoked_at"
})

const describeIssuedKey = ({ expires_at }: IssuedKey): string =>
  [
    "This key is shown only once: store it where your application reads its secrets, such as an environment variable.",
    ...(expires_at === null ? [] : [`It expires at ${expires_at}.`]),
    "Send it as: Authorization: Bearer <key>"
  ].join("\n")

const describeEnd = ({ key, name, revoked_at, expires_at }: ListedKey): string =>
  revoked_at === null
    ? `${key} is now named ${quote(name)} and ends at ${expires_at}`
    : `${key} was revoked at ${revoked_at}`

const describeLostKey = ({ id }: Pick<IssuedKey, "id">): string =>
  `key ${id} was issued and is lost: revoke it with 'prompt-retrieval keys revoke ${id}'`

const expires = optional(
  timeFlag("expires"),
  "When the key expires: a time, a date (its start in UTC), or a duration such as 90d or 12h (default: never)"
)

const workspaceOfKey = workspaceFor("a key that is given by its name")

/** Warns if the tier of a workspace has no API access. The keys of such a workspace do not work. */
const warnWithoutAccess = Effect.fnUntraced(function* (
  workspaces: ReadonlyArray<WorkspaceInfo>,
  workspace: WorkspaceId
) {
  const info = workspaces.find(({ id }) => id === workspace)
  if (info === undefined || paidTiers.includes(info.tier)) return
  yield* warn(
    `tier ${info.tier} has no API access, so requests with this key get 403; change the tier with 'prompt-retrieval workspaces set ${workspace} --tier solo'`
  )
})

const issue = makeCommand(
  "issue",
  {
    workspace,
    user: Flag.String("user").pipe(
      Flag.withDescription("Email of the key's owner; the user is created if it does not exist"),
      Flag.filter(...emailRule)
    ),
    name: Flag.String("name").pipe(
      Flag.withDescription("What the key is for (default: empty)"),
      Flag.filter(fitsName, () => `at most ${sizes.nameLength} characters`),
      Flag.withDefault("")
    ),
    expires
  },
  Effect.fnUntraced(function* ({ workspace, user, name, expires }) {
    const { workspaces, issueKey, id } = yield* openWorkspace(workspace)
    yield* warnWithoutAccess(yield* workspaces, id)
    return yield* issueKey(id, user, name, expires)
  }),
  ({ key }) => key,
  { describeHint: describeIssuedKey, describeLoss: describeLostKey }
).pipe(
  withHelp(
    "Issue an API key and print it (shown only once)",
    "keys issue --workspace Acme --user ada@example.com --name Production",
    "keys issue --workspace Acme --user ci@example.com --expires 90d"
  )
)

const list = makeCommand(
  "list",
  { workspace },
  ({ workspace }) =>
    Effect.flatMap(openWorkspace(workspace), ({ keys, id }) => keys(id)).pipe(
      Effect.map((keys) => keys.map(toListedKey))
    ),
  formatKeys
).pipe(withHelp("List a workspace's keys", "keys list --workspace Acme"))

/** The default expiry of a replaced key: one day from now, so that applications can switch to the new key. */
const oneDayFromNow = Effect.map(Clock.currentTimeMillis, (now) => toTimestamp(now + 24 * 60 * 60 * 1000))

const rotate = makeCommand(
  "rotate",
  {
    key: keyArgument,
    workspace: workspaceOfKey,
    ends: timeFlag("ends", true).pipe(
      Flag.withDefault(oneDayFromNow),
      Flag.withDescription(
        "When the old key ends: a time, a date, a duration, or now, which revokes it (default: 24h)"
      )
    ),
    expires: expires.pipe(
      Flag.withDescription(
        "When the new key expires, as for keys issue (default: it gets the lifetime of the old key)"
      )
    )
  },
  Effect.fnUntraced(function* ({ ends, expires, ...reference }) {
    const { rotateKey, id } = yield* openKey(reference)
    const { replaced, ...issued } = yield* rotateKey(id, { endsAt: ends, expiresAt: expires })
    return { ...issued, replaced: toListedKey(replaced) }
  }),
  ({ key }) => key,
  {
    describeHint: (rotated) =>
      `${describeIssuedKey(rotated)}\nThe replaced key ${describeEnd(rotated.replaced)}.`,
    describeLoss: (rotated) =>
      `${describeLostKey(rotated)}; the replaced key ${describeEnd(rotated.replaced)}`
  }
).pipe(
  withHelp(
    "Issue a new key in place of an API key and print it (shown only once)",
    "keys rotate Production --workspace Acme",
    "keys rotate 019a8f2e-7c1d-7b3a-9f00-2f6f3f1c9e11 --ends 7d --expires 90d"
  )
)

const revoke = makeCommand(
  "revoke",
  { key: keyArgument, workspace: workspaceOfKey },
  (input) =>
    Effect.flatMap(openKey(input), ({ revokeKey, id }) => revokeKey(id)).pipe(Effect.map(toListedKey)),
  (key) => formatKeys([key])
).pipe(
  withHelp(
    "Revoke an API key permanently",
    "keys revoke 019a8f2e-7c1d-7b3a-9f00-2f6f3f1c9e11",
    "keys revoke Production --workspace Acme"
  )
)

export const keyCommands = makeGroup("keys", "Issue, list, rotate and revoke API keys", [
  issue,
  list,
  rotate,
  revoke
])
