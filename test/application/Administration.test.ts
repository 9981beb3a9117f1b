import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as Memory from "../../src/adapters/memory/Memory.ts"
import { State } from "../../src/adapters/memory/State.ts"
import { Administration } from "../../src/application/Administration.ts"
import { KeyStore } from "../../src/application/KeyStore.ts"
import { WorkspaceNotFound } from "../../src/application/WorkspaceStore.ts"
import { type KeyHash, keyPrefix } from "../../src/domain/ApiKey.ts"
import { archive, archives, newId, prompt, sample, user, version, workspace } from "../support/archives.ts"

const layer = Administration.layer.pipe(
  Layer.provide(SecureRandom.layerWebCrypto),
  Layer.provideMerge(Memory.layer)
)

const bytesOf = (json: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(json))

/** All that is stored, as one value to compare. */
const contents = Effect.map(State, ({ workspaces, users, keys }) =>
  structuredClone({ workspaces, users, keys })
)

describe("issueKey", () => {
  it.effect("gives a key once, and stores of it the hash and the ends alone", () =>
    Effect.gen(function* () {
      const { importArchive, issueKey } = yield* Administration
      const [home, owner] = [workspace(), user()]
      yield* importArchive(bytesOf(archive({ workspace: home, users: [owner] })))
      yield* TestClock.setTime(Date.UTC(2026, 0, 2, 3, 4, 5, 678))

      const issued = yield* issueKey(home.id, owner.email.toUpperCase(), "Production")
      assert.match(issued.key, /^key_live_[0-9a-f]{64}$/)
      assert.deepStrictEqual(Object.keys(issued).sort(), ["id", "key"])
      const hex = issued.key.slice(keyPrefix.length)
      const key_hash = createHash("sha256").update(issued.key).digest("hex") as KeyHash
      const { keys, users } = yield* State
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
          revoked_at: null
        }
      ] as Array<unknown>)
      assert.deepStrictEqual([...users.values()], [owner])
      const stored = yield* contents
      assert.notInclude(JSON.stringify(Object.values(stored).map((map) => [...map])), hex.slice(4, -4))

      const { find } = yield* KeyStore
      assert.deepStrictEqual(yield* find(key_hash), {
        id: issued.id,
        revoked: false,
        owner_must_reset: false,
        workspace: { id: home.id, tier: home.tier, billing_status: home.billing_status }
      })
    }).pipe(Effect.provide(layer))
  )

  it.effect("never gives the same key or id twice, and adds an unknown user once", () =>
    Effect.gen(function* () {
      const { importArchive, issueKey } = yield* Administration
      const home = workspace({ tier: "free" })
      yield* importArchive(bytesOf(archive({ workspace: home })))
      const issued = yield* Effect.replicateEffect(issueKey(home.id, "New@example.com", "Key"), 20)
      assert.strictEqual(new Set(issued.map(({ key }) => key)).size, 20)
      assert.strictEqual(new Set(issued.map(({ id }) => id)).size, 20)
      const { users, keys } = yield* State
      assert.deepStrictEqual(
        [...users.values()].map(({ email, must_reset_password }) => ({ email, must_reset_password })),
        [{ email: "New@example.com", must_reset_password: false }]
      )
      assert.deepStrictEqual(
        [...new Set([...keys.values()].map(({ created_by }) => created_by))],
        [...users.keys()]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("stores nothing for a workspace that is not there", () =>
    Effect.gen(function* () {
      const { issueKey } = yield* Administration
      assert.deepStrictEqual(
        yield* Effect.flip(issueKey(newId(), "new@example.com", "Key")),
        WorkspaceNotFound
      )
      assert.deepStrictEqual(yield* contents, { workspaces: new Map(), users: new Map(), keys: new Map() })
    }).pipe(Effect.provide(layer))
  )
})

describe("a workspace and a key", () => {
  it.effect("are made new, and change when they are told to, at the time of the clock", () =>
    Effect.gen(function* () {
      const admin = yield* Administration
      yield* TestClock.setTime(Date.UTC(2026, 0, 2, 3, 4, 5, 678))
      const made = yield* admin.createWorkspace("New", "free")
      assert.deepStrictEqual(made, { id: made.id, name: "New", tier: "free", billing_status: "active" })
      assert.deepStrictEqual(yield* admin.workspaces, [made])
      assert.notStrictEqual((yield* admin.createWorkspace("New", "free")).id, made.id)

      const { id } = yield* admin.issueKey(made.id, "new@example.com", "Key")
      yield* TestClock.adjust("1 minute")
      const revoked = yield* admin.revokeKey(id)
      assert.strictEqual(revoked.revoked_at, "2026-01-02T03:05:05.678Z")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* admin.revokeKey(id), revoked)
      assert.deepStrictEqual(yield* admin.keys(made.id), [revoked])
    }).pipe(Effect.provide(layer))
  )
})

describe("exportArchive", () => {
  it.effect.prop(
    "writes any workspace as a file that imports as the same, and is then the same file",
    { made: archives },
    Effect.fnUntraced(function* ({ made }) {
      const written = Effect.gen(function* () {
        const { exportArchive } = yield* Administration
        const texts: Array<string> = []
        yield* exportArchive(made.workspace.id, (text) => Effect.sync(() => void texts.push(text)))
        return texts.join("")
      })
      const { importArchive } = yield* Administration
      yield* importArchive(bytesOf(made))
      const text = yield* written
      const again = yield* Effect.gen(function* () {
        const { importArchive } = yield* Administration
        yield* importArchive(new TextEncoder().encode(text))
        return yield* written
      }).pipe(Effect.provide(Layer.fresh(layer)))
      assert.strictEqual(again, text)
      assert.deepStrictEqual(Object.keys(JSON.parse(text)), Object.keys(archive()))
      assert.isTrue(text.endsWith("}\n"))
    }, Effect.provide(layer)),
    { arbitrary: { runs: 25 } }
  )
})

describe("exportArchive of a long history", () => {
  it.effect("writes one version or little more at a time", () =>
    Effect.gen(function* () {
      const { importArchive, exportArchive } = yield* Administration
      const long = prompt({
        versions: Array.from({ length: 200 }, (_, index) =>
          version(index + 1, { content: "x".repeat(100_000) })
        )
      })
      const made = archive({ prompts: [long] })
      yield* importArchive(bytesOf(made))
      const texts: Array<string> = []
      yield* exportArchive(made.workspace.id, (text) => Effect.sync(() => void texts.push(text)))
      assert.isBelow(Math.max(...texts.map(({ length }) => length)), 200_000)
      assert.deepStrictEqual(JSON.parse(texts.join("")), JSON.parse(JSON.stringify(made)))
    }).pipe(Effect.provide(layer))
  )
})

describe("importArchive", () => {
  it.effect.prop(
    "imports the bytes of any archive's file, and gives what it imported",
    { archive: archives },
    Effect.fnUntraced(function* ({ archive }) {
      const { importArchive, workspaces } = yield* Administration
      assert.deepStrictEqual(yield* workspaces, [])
      const imported = yield* importArchive(bytesOf(archive))
      assert.deepStrictEqual(
        { ...imported },
        {
          workspace_id: archive.workspace.id,
          prompts: archive.prompts.length,
          versions: archive.prompts.flatMap(({ versions }) => versions).length,
          fragments: archive.fragments.length,
          folders: archive.folders.length,
          tags: archive.tags.length,
          users: 0,
          api_keys: 0
        }
      )
      assert.deepStrictEqual(yield* workspaces, [archive.workspace])
      const { format: _, users: __, api_keys: ___, ...stored } = archive
      assert.deepStrictEqual((yield* State).workspaces, new Map([[archive.workspace.id, stored]]))
    }, Effect.provide(layer)),
    { arbitrary: { runs: 25 } }
  )

  const good = bytesOf(archive())
  const text = new TextDecoder().decode(good)

  it.effect.each<readonly [string, Uint8Array]>([
    ["no bytes", new Uint8Array()],
    ["no JSON", new TextEncoder().encode("format: prompt-retrieval/workspace@1")],
    ["half an archive", good.subarray(0, good.length - 1)],
    ["two archives", new TextEncoder().encode(text + text)],
    ["a comment", new TextEncoder().encode(`// archive\n${text}`)],
    ["bytes that are no UTF-8", Uint8Array.from([...good.subarray(0, -1), 0x20, 0xff, 0x7d])],
    ["Latin-1", Buffer.from(text.replace("Workspace", "Büro"), "latin1")],
    ["UTF-16", Buffer.from(text, "utf16le")],
    [
      "a surrogate in UTF-8",
      Buffer.concat([Buffer.from('"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"')])
    ]
  ])("refuses %s, and imports nothing", ([, bytes]) =>
    Effect.gen(function* () {
      const { importArchive, workspaces } = yield* Administration
      const refusal = yield* Effect.flip(importArchive(bytes))
      assert.strictEqual(refusal._tag, "BadArchive")
      if (refusal._tag !== "BadArchive") return
      assert.deepStrictEqual(
        refusal.faults.map(({ path }) => path),
        [""]
      )
      assert.match(refusal.faults[0]!.message, /^is not a JSON document in UTF-8: ./)
      assert.deepStrictEqual(yield* workspaces, [])
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses JSON nested without end, not by dying", () =>
    Effect.gen(function* () {
      const { importArchive } = yield* Administration
      const deep = `{"format": ${"[".repeat(200_000)}${"]".repeat(200_000)}}`
      const refusal = yield* Effect.flip(importArchive(new TextEncoder().encode(deep)))
      assert.strictEqual(refusal._tag, "BadArchive")
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses a bad archive with its faults, and changes nothing", () =>
    Effect.gen(function* () {
      const { importArchive } = yield* Administration
      const { archive: own } = sample()
      yield* importArchive(bytesOf(own))
      const before = yield* contents
      const bad = { ...own, prompts: [], users: own.users.map((user) => ({ ...user, email: "same" })) }
      assert.deepStrictEqual(yield* Effect.flip(importArchive(bytesOf(bad))), {
        _tag: "BadArchive",
        faults: [{ path: "users[1].email", message: "is there already" }],
        count: 1
      })
      assert.deepStrictEqual(yield* contents, before)
    }).pipe(Effect.provide(layer))
  )
})
