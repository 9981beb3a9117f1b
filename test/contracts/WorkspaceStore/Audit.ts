import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type AuditFilter, WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import { type ContentEdit, emptyEdit } from "../../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  archive,
  fragment,
  instant,
  key,
  loadArchive,
  makeTenant,
  newId,
  prompt,
  sample,
  tag,
  user,
  version,
  workspace
} from "../../support/archives.ts"
import { type ContractTests, addKey, makeOneOfEach, toReplacement } from "./support.ts"

const listEvents = (filter: AuditFilter) =>
  Effect.flatMap(WorkspaceStore, ({ auditEvents }) => auditEvents(filter))

/** Returns the events of a workspace in the order of the changes, without their ids and times. */
const readLog = (workspace: WorkspaceId) =>
  Effect.map(listEvents({ workspace, limit: 1_000 }), (events) =>
    events.map(({ id: _, at: __, ...event }) => event).toReversed()
  )

/** Tests which changes `WorkspaceStore` records in the audit log. */
export const testAudit = (it: ContractTests): void => {
  it.effect(
    "every change of a workspace and of its keys is recorded once, and the events remain after the workspace is deleted",
    () =>
      Effect.gen(function* () {
        const store = yield* WorkspaceStore
        const [home, owner] = [workspace({ name: "Acme", tier: "free" }), user()]
        const expires_at = instant("2099-01-01T00:00:00.000Z")
        const [first, second] = [key(home.id, owner, { name: "Production", expires_at }), key(home.id, owner)]
        yield* store.addWorkspace(home)
        yield* store.setWorkspace(home.id, { name: "Acme Inc" })
        yield* store.setWorkspace(home.id, { tier: "team", billing_status: "disputed" })
        yield* store.setWorkspace(home.id, { tier: "team", name: "Acme Inc" })
        yield* addKey(home.id, owner.email, owner.id, first)
        const endsAt = instant("2098-01-01T00:00:00.000Z")
        yield* store.rotateKey(first.stored.id, toReplacement(second), endsAt)
        for (const _ of [1, 2]) yield* store.revokeKey(second.stored.id, instant("2026-04-01T00:00:00.000Z"))
        const imported = archive({
          workspace: home,
          users: [owner],
          fragments: [fragment("text")],
          prompts: [prompt({ versions: [version(1), version(2)] })]
        })
        yield* store.importWorkspace(imported, { source: "acme.json" })
        const edit: ContentEdit = { ...emptyEdit, tags: [tag("draft")] }
        yield* store.editContent(home.id, () => Effect.succeed([edit, undefined] as const), {
          source: "prompts"
        })
        yield* store.editContent(home.id, () => Effect.succeed([emptyEdit, undefined] as const))
        yield* store.recordExport(home.id, "files")
        yield* store.deleteWorkspace(home.id)

        const common = { actor: "unknown", workspace_id: home.id }
        const named = { name: "Production", owner: owner.email }
        assert.deepStrictEqual(yield* readLog(home.id), [
          { ...common, action: "workspace.created", subject: "Acme", details: { tier: "free" } },
          { ...common, action: "workspace.changed", subject: "Acme", details: { name: "Acme Inc" } },
          {
            ...common,
            action: "workspace.changed",
            subject: "Acme Inc",
            details: { tier: "team", billing_status: "disputed" }
          },
          {
            ...common,
            action: "key.issued",
            subject: first.stored.id,
            details: { ...named, expires_at }
          },
          {
            ...common,
            action: "key.rotated",
            subject: first.stored.id,
            details: { ...named, ends_at: endsAt, new_key: second.stored.id, new_key_expires_at: null }
          },
          {
            ...common,
            action: "key.revoked",
            subject: second.stored.id,
            details: { ...named, revoked_at: "2026-04-01T00:00:00.000Z" }
          },
          {
            ...common,
            action: "workspace.imported",
            subject: "acme.json",
            details: { prompts: 1, versions: 2, fragments: 1, folders: 0, tags: 0, users: 1, api_keys: 0 }
          },
          {
            ...common,
            action: "workspace.edited",
            subject: "prompts",
            details: { prompts: 0, versions: 0, fragments: 0, removed_fragments: 0, folders: 0, tags: 1 }
          },
          { ...common, action: "workspace.exported", subject: "Acme", details: { format: "files" } },
          { ...common, action: "workspace.deleted", subject: "Acme", details: { prompts: 1, api_keys: 2 } }
        ])
      })
  )

  it.effect(
    "changes and deletions of users are recorded, and each deletion of a key is recorded as an event of the key's workspace",
    () =>
      Effect.gen(function* () {
        const store = yield* WorkspaceStore
        const { home, owner, key: own, archive } = makeTenant({ key: { name: "Production" } })
        yield* loadArchive(archive)
        for (const on of [true, true, false]) yield* store.setUser(owner.email, on)
        yield* store.deleteUser(owner.email, { now: 0, withActiveKeys: true })
        const events = (yield* listEvents({ limit: 1_000 })).filter(({ subject }) => subject === owner.email)
        assert.deepStrictEqual(
          events.map(({ id: _, at: __, ...event }) => event).toReversed(),
          [
            { action: "user.changed", details: { must_reset_password: true } },
            { action: "user.changed", details: { must_reset_password: false } },
            { action: "user.deleted", details: { api_keys: 1 } }
          ].map((event) => ({ ...event, actor: "unknown", workspace_id: null, subject: owner.email }))
        )
        assert.deepStrictEqual((yield* readLog(home.id)).at(-1), {
          action: "key.deleted",
          actor: "unknown",
          workspace_id: home.id,
          subject: own.stored.id,
          details: { name: "Production", owner: owner.email }
        })
      })
  )

  it.effect("neither a change that fails nor a dry run is recorded in the audit log", () =>
    Effect.gen(function* () {
      const store = yield* WorkspaceStore
      const taken = makeOneOfEach()
      yield* loadArchive(taken)
      const { archive: own, keys } = sample()
      yield* loadArchive(own)
      const before = yield* readLog(own.workspace.id)
      assert.strictEqual(before.length, 1)
      yield* store.importWorkspace(own, { dryRun: true })
      yield* Effect.flip(loadArchive({ ...own, prompts: [prompt({ id: taken.prompts[0]!.id })] }))
      yield* store.editContent(
        own.workspace.id,
        () => Effect.succeed([{ ...emptyEdit, tags: [tag("x")] }, undefined] as const),
        { dryRun: true }
      )
      yield* Effect.exit(
        store.rotateKey(
          keys.active.stored.id,
          toReplacement(keys.second),
          instant("2099-01-01T00:00:00.000Z")
        )
      )
      yield* Effect.exit(addKey(own.workspace.id, user().email, newId(), keys.active))
      yield* Effect.flip(store.deleteUser(own.users[0]!.email, { now: 0, withActiveKeys: false }))
      assert.deepStrictEqual(yield* readLog(own.workspace.id), before)
    })
  )

  it.effect("auditEvents lists the latest events first, at most the requested number", () =>
    Effect.gen(function* () {
      const store = yield* WorkspaceStore
      const home = workspace()
      yield* store.addWorkspace(home)
      for (const name of ["a", "b", "c"]) yield* store.setWorkspace(home.id, { name })
      const all = yield* listEvents({ workspace: home.id, limit: 10 })
      assert.deepStrictEqual(
        all.map(({ details }) => details.name),
        ["c", "b", "a", undefined]
      )
      const ids = all.map(({ id }) => BigInt(id))
      assert.isTrue(ids.every((id, index) => index === 0 || id < ids[index - 1]!))
      assert.deepStrictEqual(yield* listEvents({ workspace: home.id, limit: 2 }), all.slice(0, 2))
      assert.strictEqual((yield* listEvents({ limit: 2 })).length, 2)
      assert.deepStrictEqual(yield* listEvents({ workspace: newId<WorkspaceId>(), limit: 10 }), [])
    })
  )

  it.effect("audit events contain the id of a key, but neither the hash nor the digits of the key", () =>
    Effect.gen(function* () {
      const store = yield* WorkspaceStore
      const { archive: own, keys } = sample()
      yield* loadArchive(own)
      const added = key(own.workspace.id, user())
      yield* store.rotateKey(keys.active.stored.id, toReplacement(added), instant("2099-01-01T00:00:00.000Z"))
      yield* store.revokeKey(keys.second.stored.id, instant("2026-04-01T00:00:00.000Z"))
      for (const { email } of own.users) yield* store.deleteUser(email, { now: 0, withActiveKeys: true })
      yield* store.deleteWorkspace(own.workspace.id)
      const text = JSON.stringify(yield* listEvents({ limit: 1_000 }))
      assert.include(text, keys.active.stored.id)
      for (const { plaintext, stored } of [...Object.values(keys), added]) {
        assert.notInclude(text, stored.key_hash)
        assert.notInclude(text, plaintext.slice(9, 25))
        assert.notInclude(text, plaintext.slice(-16))
      }
    })
  )
}
