import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type AuditFilter, WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  archive,
  fragment,
  instant,
  key,
  loadArchive,
  prompt,
  sample,
  tag,
  user,
  version,
  workspace
} from "../../support/archives.ts"
import { makeTest } from "../../support/makeTest.ts"
import { type ContractTests, addKey, editContent, toReplacement } from "./support.ts"

const listEvents = (filter: AuditFilter) =>
  Effect.map(
    Effect.flatMap(WorkspaceStore, ({ auditEvents }) => auditEvents(filter)),
    (events) => events.map(({ id: _, at: __, ...event }) => event)
  )

/** Returns the events of a workspace in the order of the changes, without their ids and times. */
const readLog = (workspace: WorkspaceId) =>
  Effect.map(listEvents({ workspace, limit: 1_000 }), (events) => events.toReversed())

/** Tests which changes `WorkspaceStore` records in the audit log. */
export const testAudit = (it: ContractTests): void => {
  const test = makeTest(it.effect)
  test("every change of a workspace, of its keys and of their owners is recorded once, and auditEvents lists at most the requested number of events, the latest first, even after the workspace is deleted", function* () {
    const store = yield* WorkspaceStore
    const [home, owner] = [workspace({ name: "Acme", tier: "free" }), user()]
    const [endsAt, expires_at] = ["2098-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z"].map(instant)
    const [first, second] = [
      key(home.id, owner, { name: "Production", expires_at: expires_at! }),
      key(home.id, owner)
    ]
    yield* store.addWorkspace(home)
    yield* store.setWorkspace(home.id, { name: "Acme Inc" })
    yield* store.setWorkspace(home.id, { tier: "team", billing_status: "disputed" })
    yield* store.setWorkspace(home.id, { tier: "team", name: "Acme Inc" })
    yield* addKey(home.id, owner.email, owner.id, first)
    yield* store.rotateKey(first.stored.id, toReplacement(second), endsAt!)
    for (const _ of [1, 2]) yield* store.revokeKey(second.stored.id, instant("2026-04-01T00:00:00.000Z"))
    const imported = archive({
      workspace: home,
      users: [owner],
      fragments: [fragment("text")],
      prompts: [prompt({ versions: [version(1), version(2)] })]
    })
    for (const _ of [1, 2]) yield* store.importWorkspace(imported, { source: "acme.json" })
    yield* editContent(home.id, { tags: [tag("draft")] }, { source: "prompts" })
    yield* editContent(home.id, {})
    yield* store.recordExport(home.id, "files")
    for (const on of [true, true, false]) yield* store.setUser(owner.email, on)
    yield* store.deleteWorkspace(home.id)

    const named = { name: "Production", owner: owner.email }
    const [old, rotated] = [first.stored.id, second.stored.id]
    const expected = [
      ["workspace.created", "Acme", { tier: "free" }],
      ["workspace.changed", "Acme", { name: "Acme Inc" }],
      ["workspace.changed", "Acme Inc", { tier: "team", billing_status: "disputed" }],
      ["key.issued", old, { ...named, expires_at }],
      ["key.rotated", old, { ...named, ends_at: endsAt, new_key: rotated, new_key_expires_at: null }],
      ["key.revoked", rotated, { ...named, revoked_at: "2026-04-01T00:00:00.000Z" }],
      [
        "workspace.imported",
        "acme.json",
        { prompts: 1, versions: 2, fragments: 1, folders: 0, tags: 0, users: 1, api_keys: 0 }
      ],
      [
        "workspace.edited",
        "prompts",
        { prompts: 0, versions: 0, fragments: 0, removed_fragments: 0, folders: 0, tags: 1 }
      ],
      ["workspace.exported", "Acme", { format: "files" }],
      ["workspace.deleted", "Acme", { prompts: 1, api_keys: 2 }]
    ] as const
    const common = { actor: "unknown", workspace_id: home.id }
    assert.deepStrictEqual(
      yield* readLog(home.id),
      expected.map(([action, subject, details]) => ({ ...common, action, subject, details }) as never)
    )
    const latest = yield* listEvents({ workspace: home.id, limit: 2 })
    assert.deepStrictEqual(
      latest.map(({ action }) => action),
      ["workspace.deleted", "workspace.exported"]
    )
    const ofOwner = (yield* listEvents({ limit: 1_000 })).filter(({ subject }) => subject === owner.email)
    assert.deepStrictEqual(
      ofOwner.map(({ action, workspace_id, details }) => ({ action, workspace_id, details })),
      [false, true].map((must_reset_password) => ({
        action: "user.changed",
        workspace_id: null,
        details: { must_reset_password }
      }))
    )
  })

  test("deletions of users and of their keys are recorded, and events contain neither the hash nor the digits of a key", function* () {
    const store = yield* WorkspaceStore
    const { archive: own, keys } = sample()
    yield* loadArchive(own)
    const [home, owner] = [own.workspace.id, own.users[0]!]
    const added = key(home, user())
    yield* store.rotateKey(keys.active.stored.id, toReplacement(added), instant("2099-01-01T00:00:00.000Z"))
    yield* store.revokeKey(keys.second.stored.id, instant("2026-04-01T00:00:00.000Z"))
    yield* store.deleteUser(owner.email, { now: 0, withActiveKeys: true })
    yield* store.deleteWorkspace(home)
    const events = yield* listEvents({ limit: 1_000 })
    const ofKeys = (yield* readLog(home)).filter(({ action }) => action === "key.deleted")
    assert.sameMembers(
      ofKeys.map(({ subject }) => subject),
      [keys.active, keys.second, keys.revoked, added].map(({ stored }) => stored.id as string)
    )
    assert.deepInclude(events, {
      actor: "unknown",
      action: "user.deleted",
      workspace_id: null,
      subject: owner.email,
      details: { api_keys: 6 }
    })
    const text = JSON.stringify(events)
    for (const { plaintext, stored } of [...Object.values(keys), added]) {
      assert.notInclude(text, stored.key_hash)
      assert.notInclude(text, plaintext.slice(9, 25))
      assert.notInclude(text, plaintext.slice(-16))
    }
  })
}
