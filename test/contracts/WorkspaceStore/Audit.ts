import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type AuditFilter, WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  archive,
  fragment,
  instant,
  key,
  prompt,
  tag,
  user,
  version,
  workspace
} from "../../support/archives.ts"
import { makeTest } from "../../support/makeTest.ts"
import { addKey, type ContractTests, editContent, toReplacement } from "./support.ts"

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
  test("auditEvents returns each change to a workspace, to its keys and to their owners once, the latest first, without hashes and digits of keys", function* () {
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
    yield* store.deleteUser(owner.email, { now: 0, withActiveKeys: true })
    yield* store.deleteWorkspace(home.id)

    const named = { name: "Production", owner: owner.email }
    const [old, rotated] = [first.stored.id, second.stored.id]
    const deletedKeys = [
      [old, { ...named, name: "Production (replaced)" }] as const,
      [rotated, named] as const
    ].sort(([a], [b]) => (a < b ? -1 : 1))
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
      ...deletedKeys.map(([subject, details]) => ["key.deleted", subject, details] as const),
      ["workspace.deleted", "Acme", { prompts: 1, api_keys: 0 }]
    ] as const
    const common = { actor: "unknown", workspace_id: home.id }
    assert.deepStrictEqual(
      yield* readLog(home.id),
      expected.map(([action, subject, details]) => ({ ...common, action, subject, details }) as never)
    )
    const latest = yield* listEvents({ workspace: home.id, limit: 2 })
    assert.deepStrictEqual(
      latest.map(({ action }) => action),
      ["workspace.deleted", "key.deleted"]
    )
    const all = yield* listEvents({ limit: 1_000 })
    const ofOwner = all.filter(({ subject }) => subject === owner.email)
    assert.deepStrictEqual(
      ofOwner.map(({ action, workspace_id, details }) => [action, workspace_id, details]),
      [
        ["user.deleted", null, { api_keys: 2 }],
        ["user.changed", null, { must_reset_password: false }],
        ["user.changed", null, { must_reset_password: true }]
      ]
    )
    const text = JSON.stringify(all)
    for (const { plaintext, stored } of [first, second])
      for (const secret of [stored.key_hash, plaintext.slice(9, 25), plaintext.slice(-16)])
        assert.notInclude(text, secret)
  })
}
