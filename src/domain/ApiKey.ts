import { hash } from "node:crypto"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { BillingStatus } from "./Billing.ts"
import type { WorkspaceId } from "./Prompt.ts"
import { Uuid } from "./Uuid.ts"

export const ApiKeyId = Uuid.pipe(Schema.brand("ApiKeyId"))
export type ApiKeyId = typeof ApiKeyId.Type

export const UserId = Uuid.pipe(Schema.brand("UserId"))
export type UserId = typeof UserId.Type

/** The fixed prefix of every key (SPEC.md section 5.3). */
export const keyPrefix = "key_live_"

/** The plaintext of a key: the prefix and 64 lower-case hexadecimal digits. Never stored, never logged. */
export type ApiKey = string & { readonly ApiKey: unique symbol }

/** SHA-256 of a whole key, as 64 lower-case hexadecimal digits: all that is stored of it (SPEC.md section 5.4). */
export const KeyHash = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/, { message: "must be 64 lower-case hexadecimal digits" })
).pipe(Schema.brand("KeyHash"))
export type KeyHash = typeof KeyHash.Type

/** What the store knows of a key, its owner and its workspace; `workspace` is null for a legacy key. */
export interface KeyRecord {
  readonly id: ApiKeyId
  readonly revoked: boolean
  readonly owner_must_reset: boolean
  readonly workspace: {
    readonly id: WorkspaceId
    readonly tier: string
    readonly billing_status: BillingStatus
  } | null
}

/** The six refusals of SPEC.md section 5. */
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

/** A key made of 32 random bytes (SPEC.md section 5.3). */
export const makeApiKey = (random: Uint8Array): ApiKey => {
  if (random.length !== 32) throw new RangeError("a key is made of 32 bytes")
  return (keyPrefix + Buffer.from(random).toString("hex")) as ApiKey
}

const keyPattern = /^key_live_[0-9a-f]{64}$/

/**
 * Checks a token's form: without the prefix its format is wrong; with the prefix and a wrong rest it is a key that
 * cannot exist (DESIGN.md section 4.5).
 */
export const parseApiKey = (token: string): Result.Result<ApiKey, typeof InvalidKeyFormat | InvalidKey> => {
  if (!token.startsWith(keyPrefix)) return Result.fail(InvalidKeyFormat)
  return keyPattern.test(token) ? Result.succeed(token as ApiKey) : Result.fail(InvalidKey)
}

export const hashApiKey = (key: ApiKey): KeyHash => hash("sha256", key, "hex") as KeyHash

/** The four digits at each end of a key, which is all that listings show of it (SPEC.md section 5.4). */
export const keyEnds = (key: ApiKey): { readonly key_start: string; readonly key_end: string } => ({
  key_start: key.slice(keyPrefix.length, keyPrefix.length + 4),
  key_end: key.slice(-4)
})

/** `key_live_ab12...9f0e` (SPEC.md section 5.4). */
export const keySummary = (ends: { readonly key_start: string; readonly key_end: string }): string =>
  `${keyPrefix}${ends.key_start}...${ends.key_end}`

/** Who calls, once the key has been looked up; the refusals come in this order (DESIGN.md section 4.6). */
export const authenticate = (
  record: KeyRecord
): Result.Result<
  NonNullable<KeyRecord["workspace"]>,
  typeof KeyRevoked | typeof OwnerMustReset | typeof NoOrganization
> => {
  if (record.revoked) return Result.fail(KeyRevoked)
  if (record.owner_must_reset) return Result.fail(OwnerMustReset)
  return record.workspace === null ? Result.fail(NoOrganization) : Result.succeed(record.workspace)
}
