import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { KeyStore } from "../../../application/ports/KeyStore.ts"
import { ApiKeyId, InvalidKey, type KeyRecord } from "../../../domain/ApiKey.ts"
import { BillingStatus } from "../../../domain/Billing.ts"
import { Timestamp } from "../../../domain/Timestamp.ts"
import { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import type { WatchableStore } from "./HostChangeFeed.ts"
import { HostCalls } from "./HostCalls.ts"

const Key = Schema.Struct({
  id: ApiKeyId,
  revoked: Schema.optional(Schema.Boolean),
  expires_at: Schema.optional(Schema.NullOr(Timestamp)),
  owner_must_reset: Schema.optional(Schema.Boolean),
  workspace: Schema.NullOr(
    Schema.Struct({
      id: WorkspaceId,
      tier: Schema.String,
      billing_status: Schema.optional(BillingStatus)
    })
  )
})

/** An API key of a host, with the state of its workspace. */
export interface HostKey {
  /** The id of the key, a UUID in lowercase. */
  readonly id: string
  /** Default: false. */
  readonly revoked?: boolean | undefined
  /** When the key expires, ISO 8601 in UTC with milliseconds. Default: never. */
  readonly expires_at?: string | null | undefined
  /** True if the owner of the key must reset the password before the key works again. Default: false. */
  readonly owner_must_reset?: boolean | undefined
  /** The workspace that the key reads; a key without a workspace is rejected. */
  readonly workspace: {
    /** A UUID in lowercase. */
    readonly id: string
    /** `solo` or `team`; any other tier has no API access. */
    readonly tier: string
    /** Default: `active`. */
    readonly billing_status?: BillingStatus | undefined
  } | null
}

/** The API keys of a host. */
export interface HostKeyStore extends WatchableStore {
  /**
   * Returns the key with this hash, or `undefined`.
   *
   * @param keyHash The SHA-256 hash of the whole key (`key_live_` and 64 lowercase hexadecimal digits) in lowercase
   * hexadecimal digits. Keys are never passed themselves.
   */
  readonly find: (keyHash: string) => Promise<HostKey | undefined>
  /** Called for each admitted request of a key. The response does not wait for the call; an error is only logged. */
  readonly markUsed?: ((keyId: string, usedAt: Date) => void | Promise<void>) | undefined
}

const toKeyRecord = ({
  id,
  revoked,
  expires_at,
  owner_must_reset,
  workspace
}: typeof Key.Type): KeyRecord => ({
  id,
  revoked: revoked === true,
  owner_must_reset: owner_must_reset === true,
  expires_at: expires_at ?? null,
  workspace: workspace && { ...workspace, billing_status: workspace.billing_status ?? "active" }
})

/** The keys of a host. */
export const layer = (host: HostKeyStore): Layer.Layer<KeyStore> =>
  Layer.effect(
    KeyStore,
    Effect.gen(function* () {
      const calls = new HostCalls("keyStore")
      const findKey = calls.makeFinder("find", Key, InvalidKey)
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      return KeyStore.of({
        find: (hash) =>
          Effect.map(
            findKey(() => host.find(hash)),
            toKeyRecord
          ),
        markUsed: (id, now) => {
          if (host.markUsed === undefined) return
          fork(
            Effect.catchCause(
              calls.run(() => host.markUsed?.(id, new Date(now))),
              (cause) => Effect.logWarning("keyStore.markUsed failed", cause)
            )
          )
        }
      })
    })
  )
