import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Memory from "../../../src/adapters/outbound/memory/Memory.ts"
import { MemoryState } from "../../../src/adapters/outbound/memory/MemoryState.ts"
import { Administration } from "../../../src/application/administration/Administration.ts"
import { type RawPart, toRawParts } from "../../../src/application/formats/RawPart.ts"
import { KeyStore } from "../../../src/application/ports/KeyStore.ts"
import { type KeyHash, keyPrefix } from "../../../src/domain/ApiKey.ts"
import { archive, prompt, user, version, workspace } from "../../support/archives.ts"

const layer = Administration.layer.pipe(
  Layer.provide(SecureRandom.layerWebCrypto),
  Layer.provideMerge(Memory.layer)
)

/** Streams the values of an archive's file, as `importArchive` takes them. */
const toSource = (json: unknown): Stream.Stream<RawPart> => Stream.fromIterable(toRawParts(json))

/** Returns a copy of everything that is stored. */
const storedState = Effect.map(MemoryState, ({ workspaces, users, keys }) =>
  structuredClone({ workspaces, users, keys })
)

describe("issueKey", () => {
  it.effect("issueKey returns the key, and stores only its hash and its first and last digits", () =>
    Effect.gen(function* () {
      const { importArchive, issueKey } = yield* Administration
      const [home, owner] = [workspace(), user()]
      yield* importArchive(toSource(archive({ workspace: home, users: [owner] })))
      yield* TestClock.setTime(Date.UTC(2026, 0, 2, 3, 4, 5, 678))

      const issued = yield* issueKey(home.id, owner.email.toUpperCase(), "Production")
      assert.match(issued.key, /^key_live_[0-9a-f]{64}$/)
      assert.deepStrictEqual(issued, { id: issued.id, key: issued.key, expires_at: null })
      const hex = issued.key.slice(keyPrefix.length)
      const key_hash = createHash("sha256").update(issued.key).digest("hex") as KeyHash
      const { keys, users } = yield* MemoryState
      assert.deepStrictEqual([...keys.values()], [
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
      ] as Array<unknown>)
      assert.deepStrictEqual([...users.values()], [owner])
      const stored = yield* storedState
      assert.notInclude(JSON.stringify(Object.values(stored).map((map) => [...map])), hex.slice(4, -4))

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
  it.effect(
    "createWorkspace creates an active workspace, and revokeKey revokes its key once, at the current time",
    () =>
      Effect.gen(function* () {
        const admin = yield* Administration
        yield* TestClock.setTime(Date.UTC(2026, 0, 2, 3, 4, 5, 678))
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
        yield* TestClock.adjust("1 minute")
        const revoked = yield* admin.revokeKey(id)
        assert.strictEqual(revoked.revoked_at, "2026-01-02T03:05:05.678Z")
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* admin.revokeKey(id), revoked)
        assert.deepStrictEqual(yield* admin.keys(created.id), [revoked])
      }).pipe(Effect.provide(layer))
  )
})

describe("exportArchive", () => {
  it.effect("exportArchive writes an archive in chunks of about one version", () =>
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
