import { hash } from "node:crypto"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { BillingStatus, paidTiers } from "./Billing.ts"
import { sizes } from "./Sizes.ts"
import { Timestamp, toTimestamp } from "./Timestamp.ts"
import { Uuid } from "./Uuid.ts"
import { WorkspaceId } from "./WorkspaceId.ts"

export const ApiKeyId = Uuid.pipe(Schema.brand("ApiKeyId"))
export type ApiKeyId = typeof ApiKeyId.Type

export const UserId = Uuid.pipe(Schema.brand("UserId"))
export type UserId = typeof UserId.Type

/** The fixed prefix of every key (specification 5.3). */
export const keyPrefix = "key_live_"

/** The plaintext of a key: the prefix and 64 lowercase hexadecimal digits. The plaintext is never stored or logged. */
export type ApiKey = string & { readonly ApiKey: unique symbol }

/** The SHA-256 hash of a key: 64 lowercase hexadecimal digits. Stores hold the hash, not the key (specification 5.4). */
export const KeyHash = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/u, { message: "must be 64 lowercase hexadecimal digits" })
).pipe(Schema.brand("KeyHash"))
export type KeyHash = typeof KeyHash.Type

/** A stored key with the state of its owner and its workspace. `workspace` is null for a key without a workspace. */
export const KeyRecord = Schema.Struct({
  id: ApiKeyId,
  revoked: Schema.Boolean,
  /** When the key expires; null if it never expires. */
  expires_at: Schema.NullOr(Timestamp),
  owner_must_reset: Schema.Boolean,
  // `tier` can be a tier that this program does not know.
  workspace: Schema.NullOr(
    Schema.Struct({ id: WorkspaceId, tier: Schema.String, billing_status: BillingStatus })
  )
})
export type KeyRecord = typeof KeyRecord.Type

/** The six authentication errors, in the order of the checks (specification 5). */
export const MalformedAuthorization = { _tag: "MalformedAuthorization" } as const
export const InvalidKeyFormat = { _tag: "InvalidKeyFormat" } as const
export const InvalidKey = { _tag: "InvalidKey" } as const
export const KeyRevoked = { _tag: "KeyRevoked" } as const
export const OwnerMustReset = { _tag: "OwnerMustReset" } as const
export const NoOrganization = { _tag: "NoOrganization" } as const
export type InvalidKey = typeof InvalidKey
export type AuthenticationError =
  | typeof MalformedAuthorization
  | typeof InvalidKeyFormat
  | InvalidKey
  | typeof KeyRevoked
  | typeof OwnerMustReset
  | typeof NoOrganization

/** Creates a key from 32 random bytes (specification 5.3). Throws a RangeError for any other number of bytes. */
export const makeApiKey = (random: Uint8Array): ApiKey => {
  if (random.length !== 32) throw new RangeError("a key needs 32 random bytes")
  return (keyPrefix + Buffer.from(random).toString("hex")) as ApiKey
}

const keyPattern = new RegExp(`^${keyPrefix}[0-9a-f]{64}$`)

/**
 * Parses a token as a key (specification 5). Fails with `InvalidKeyFormat` if the token does not start with the prefix,
 * and with `InvalidKey` if anything other than 64 lowercase hexadecimal digits follows.
 */
export const parseApiKey = (token: string): Result.Result<ApiKey, typeof InvalidKeyFormat | InvalidKey> => {
  if (!token.startsWith(keyPrefix)) return Result.fail(InvalidKeyFormat)
  return keyPattern.test(token) ? Result.succeed(token as ApiKey) : Result.fail(InvalidKey)
}

/** Returns the hash under which a key is stored and looked up (specification 5.4). */
export const hashApiKey = (key: ApiKey): KeyHash => hash("sha256", key, "hex") as KeyHash

/** Returns the digits of a key that a listing shows: the first four and the last four (specification 5.4). */
export const toKeyEnds = (key: ApiKey): { readonly key_start: string; readonly key_end: string } => ({
  key_start: key.slice(keyPrefix.length, keyPrefix.length + 4),
  key_end: key.slice(-4)
})

/** Formats the summary of a key, such as `key_live_ab12...9f0e` (specification 5.4). */
export const formatKeySummary = (ends: { readonly key_start: string; readonly key_end: string }): string =>
  `${keyPrefix}${ends.key_start}...${ends.key_end}`

/** Returns a key's time of expiry, in milliseconds since the epoch. Infinity means that the key never expires. */
export const toExpiryTime = (expires_at: Timestamp | null): number =>
  expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at)

const isExpired = (expires_at: Timestamp | null, now: number): boolean => now >= toExpiryTime(expires_at)

/** The times of a key's revocation and expiry; null means never. A key whose `revoked_at` is not null is inactive. */
export interface KeyLifetime {
  readonly revoked_at: Timestamp | null
  readonly expires_at: Timestamp | null
}

/** Returns true if a key is neither revoked nor expired. `now` is in milliseconds since the epoch. */
export const isActive = ({ revoked_at, expires_at }: KeyLifetime, now: number): boolean =>
  revoked_at === null && !isExpired(expires_at, now)

/**
 * Returns the new lifetime of a key that another key replaces. If `endsAt` is after `now`, the key expires at `endsAt`
 * or at its previous expiry, whichever is earlier. Otherwise, the key is revoked at `now`. A key that is already revoked
 * keeps its revocation time.
 */
export const endKey = (
  { revoked_at, expires_at }: KeyLifetime,
  endsAt: Timestamp,
  now: Timestamp
): KeyLifetime => {
  if (endsAt <= now) return { revoked_at: revoked_at ?? now, expires_at }
  return { revoked_at, expires_at: expires_at !== null && expires_at < endsAt ? expires_at : endsAt }
}

const replacedSuffix = " (replaced)"

/** Returns the new name of a replaced key. The replacement gets the old name. */
export const toReplacedName = (name: string): string =>
  [...name].slice(0, sizes.nameLength - replacedSuffix.length).join("") + replacedSuffix

/** Returns the expiry of a key that gets the lifetime of the replaced key, starting at `now`; null means never. */
export const keepLifetime = (
  replaced: { readonly created_at: Timestamp; readonly expires_at: Timestamp | null },
  now: Timestamp
): Timestamp | null =>
  replaced.expires_at === null
    ? null
    : toTimestamp(Date.parse(now) + Date.parse(replaced.expires_at) - Date.parse(replaced.created_at))

/** The workspace's tier has no API access (specification 5.6). */
export const ApiNotAllowed = { _tag: "ApiNotAllowed" } as const
/** The workspace has an active chargeback dispute (specification 7). */
export const Disputed = { _tag: "Disputed" } as const
/** The subscription is past due or over its limit (specification 7). */
export const PastDue = { _tag: "PastDue" } as const
export type AccessError = typeof ApiNotAllowed | typeof Disputed | typeof PastDue

/**
 * Returns the workspace of a key if the key may use the API at `now` (milliseconds since the epoch). Fails with the
 * first error that applies:
 *
 * - `KeyRevoked` if the key is revoked or expired.
 * - `OwnerMustReset` if the key's owner must reset the password.
 * - `NoOrganization` if the key has no workspace.
 * - `ApiNotAllowed` if the workspace's tier does not include the API.
 * - `Disputed` or `PastDue` if the workspace's billing status is not `active`.
 */
export const authorize = (
  { revoked, expires_at, owner_must_reset, workspace }: KeyRecord,
  now: number
): Result.Result<NonNullable<KeyRecord["workspace"]>, AuthenticationError | AccessError> => {
  if (revoked || isExpired(expires_at, now)) return Result.fail(KeyRevoked)
  if (owner_must_reset) return Result.fail(OwnerMustReset)
  if (workspace === null) return Result.fail(NoOrganization)
  if (!paidTiers.includes(workspace.tier)) return Result.fail(ApiNotAllowed)
  switch (workspace.billing_status) {
    case "active":
      return Result.succeed(workspace)
    case "disputed":
      return Result.fail(Disputed)
    case "past_due":
    case "over_limit":
      return Result.fail(PastDue)
  }
}
