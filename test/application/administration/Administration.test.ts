import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as PostgresKeyStore from "../../../src/adapters/outbound/postgres/keys/PostgresKeyStore.ts"
import { Administration } from "../../../src/application/administration/Administration.ts"
import { type RawPart, toRawParts } from "../../../src/application/formats/RawPart.ts"
import { KeyStore } from "../../../src/application/ports/KeyStore.ts"
import { type KeyHash, keyPrefix } from "../../../src/domain/ApiKey.ts"
import { archive, exportArchive, prompt, user, version, workspace } from "../../support/archives.ts"
import { atTime } from "../../support/clock.ts"
import { workspaceStore } from "../../support/database/workspaceStore.ts"
import { migratedDatabase } from "../../support/postgres.ts"

const layer = Administration.layer.pipe(
  Layer.provide(SecureRandom.layerWebCrypto),
  Layer.provideMerge(Layer.merge(workspaceStore, PostgresKeyStore.layer)),
  Layer.provide(migratedDatabase)
)

const start = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

/** Returns the parts of an archive as the stream that `importArchive` takes. */
const toSource = (json: unknown): Stream.Stream<RawPart> => Stream.fromIterable(toRawParts(json))

describe("issueKey", () => {
  it.live(
    "issueKey returns the key, and stores only the hash and the first and last four digits of the key",
    () =>
      Effect.gen(function* () {
        const { importArchive, issueKey, auditEvents } = yield* Administration
        const [home, owner] = [workspace(), user()]
        yield* importArchive(toSource(archive({ workspace: home, users: [owner] })))
        const issued = yield* atTime(start)(issueKey(home.id, owner.email.toUpperCase(), "Production"))
        assert.match(issued.key, /^key_live_[0-9a-f]{64}$/)
        assert.deepStrictEqual(issued, { id: issued.id, key: issued.key, expires_at: null })
        const hex = issued.key.slice(keyPrefix.length)
        const key_hash = createHash("sha256").update(issued.key).digest("hex") as KeyHash
        const stored = yield* exportArchive(home.id)
        assert.deepStrictEqual(stored.api_keys, [
          {
            id: issued.id,
            workspace_id: home.id,
            created_by: owner.id,
            name: "Production",
            key_hash,
            key_start: hex.slice(0, 4),
            key_end: hex.slice(-4),
            created_at: "2026-01-02T03:04:05.678Z",
            revoked_at: null,
            expires_at: null
          }
        ] as ReadonlyArray<unknown> as typeof stored.api_keys)
        assert.deepStrictEqual(stored.users, [owner])
        assert.notInclude(JSON.stringify([stored, yield* auditEvents({ limit: 100 })]), hex.slice(4, -4))

        const { find } = yield* KeyStore
        assert.deepStrictEqual(yield* find(key_hash), {
          id: issued.id,
          revoked: false,
          expires_at: null,
          owner_must_reset: false,
          workspace: { id: home.id, tier: home.tier, billing_status: home.billing_status }
        })
      }).pipe(Effect.provide(layer))
  )
})

describe("createWorkspace and revokeKey", () => {
  it.live(
    "createWorkspace creates an active workspace, and revokeKey revokes a key at the current time and keeps this time if it is called again",
    () =>
      Effect.gen(function* () {
        const admin = yield* Administration
        const created = yield* admin.createWorkspace("New", "free")
        assert.deepStrictEqual(created, {
          id: created.id,
          name: "New",
          tier: "free",
          billing_status: "active"
        })
        assert.deepStrictEqual(yield* admin.workspaces, [created])
        assert.notStrictEqual((yield* admin.createWorkspace("New", "free")).id, created.id)

        const { id } = yield* admin.issueKey(created.id, "new@example.com", "Key")
        const revoked = yield* atTime(start + 60_000)(admin.revokeKey(id))
        assert.strictEqual(revoked.revoked_at, "2026-01-02T03:05:05.678Z")
        assert.deepStrictEqual(yield* admin.revokeKey(id), revoked)
        assert.deepStrictEqual(yield* admin.keys(created.id), [revoked])
      }).pipe(Effect.provide(layer))
  )
})

describe("exportArchive", () => {
  it.live(
    "exportArchive writes the archive of a prompt with large versions in chunks of about one version",
    () =>
      Effect.gen(function* () {
        const { importArchive, exportArchive } = yield* Administration
        const long = prompt({
          versions: Array.from({ length: 200 }, (_, index) =>
            version(index + 1, { content: "x".repeat(100_000) })
          )
        })
        const original = archive({ prompts: [long] })
        yield* importArchive(toSource(original))
        const texts: Array<string> = []
        yield* exportArchive(original.workspace.id, (text) => Effect.sync(() => void texts.push(text)))
        assert.isBelow(Math.max(...texts.map(({ length }) => length)), 200_000)
        assert.deepStrictEqual(JSON.parse(texts.join("")), JSON.parse(JSON.stringify(original)))
      }).pipe(Effect.provide(layer))
  )
})
