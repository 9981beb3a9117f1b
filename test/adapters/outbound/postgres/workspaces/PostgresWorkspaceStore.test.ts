import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { tables } from "../../../../../src/adapters/outbound/postgres/administration/ContentWriter.ts"
import { ArchiveTooLarge, InvalidContent } from "../../../../../src/domain/WorkspaceContent.ts"
import { WorkspaceStore } from "../../../../../src/application/ports/WorkspaceStore.ts"
import {
  archive,
  exportArchive,
  fragment,
  instant,
  key,
  makeEdit,
  newId,
  prompt,
  sample,
  tag,
  fragmentBinding,
  version,
  workspace
} from "../../../../support/archives.ts"
import { toNewKey, toReplacement } from "../../../../contracts/WorkspaceStore/support.ts"
import { workspaceStore } from "../../../../support/database/workspaceStore.ts"
import { migratedDatabase } from "../../../../support/postgres.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const store = Layer.provideMerge(workspaceStore, migratedDatabase)

const importTables = ["workspaces", ...Object.keys(tables)]

/** Reads every row of the tables that an import writes. Each write of a row changes its `xmin` and `ctid`. */
const readEveryRow = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  return yield* Effect.forEach(importTables, (table) =>
    sql.unsafe<{ readonly row: unknown }>(
      `select xmin::text, ctid::text, to_jsonb(t) as row from ${table} t order by ctid`
    )
  )
})

describe("the PostgreSQL workspace store", () => {
  layer(store, { excludeTestServices: true })((it) => {
    const test = makeTest(it.effect)
    test("importing the same archive again writes no row of the content, and editContent writes only the rows that the edit names", function* () {
      const { importWorkspace, editContent } = yield* WorkspaceStore
      const { archive } = sample()
      const home = archive.workspace.id
      yield* importWorkspace(archive)
      const before = yield* readEveryRow
      assert.isTrue(before.every((rows) => rows.length > 0))
      yield* importWorkspace(archive)
      yield* editContent(home, () => Effect.succeed([makeEdit(), undefined] as const))
      assert.deepStrictEqual(yield* readEveryRow, before)
      const edited = { ...archive.prompts[0]!, title: "Edited", versions: [] }
      const edit = makeEdit({ prompts: [edited] })
      yield* editContent(home, () => Effect.succeed([edit, undefined] as const))
      const after = yield* readEveryRow
      const isUnchanged = ({ row }: { readonly row: unknown }) =>
        (row as { readonly id?: string }).id !== edited.id
      assert.deepStrictEqual(
        after.map((rows) => rows.filter(isUnchanged)),
        before.map((rows) => rows.filter(isUnchanged))
      )
    })

    test("importWorkspace rejects values that the tables cannot store, and changes nothing", function* () {
      const { importWorkspace } = yield* WorkspaceStore
      const before = yield* readEveryRow
      const large = { a: "x".repeat(9_000_000), b: "x".repeat(9_000_000) }
      const rejected = [
        [
          prompt({ created_at: instant("0000-01-01T00:00:00.000Z") }),
          'cannot be stored: date/time field value out of range: "0000-01-01T00:00:00.000Z"'
        ],
        [
          prompt({ versions: [version(1, { metadata: large })] }),
          'cannot be stored: new row for relation "prompt_versions" violates check constraint "prompt_versions_metadata_check"'
        ]
      ] as const
      for (const [one, message] of rejected) {
        assert.deepStrictEqual(
          yield* Effect.flip(importWorkspace(archive({ prompts: [one] }))),
          InvalidContent([{ path: "", message }])
        )
      }
      assert.deepStrictEqual(yield* readEveryRow, before)
    })

    test("if the audit log cannot record a change, the change is rolled back", function* () {
      const store = yield* WorkspaceStore
      const sql = yield* PgClient.PgClient
      const { archive: own, keys } = sample()
      yield* store.importWorkspace(own)
      const [home, owner] = [own.workspace, own.users[0]!]
      const added = key(home.id, owner)
      const at = instant("2026-04-01T00:00:00.000Z")
      const edit = makeEdit({ tags: [tag("new")] })
      const changes: Readonly<Record<string, Effect.Effect<unknown, unknown>>> = {
        addWorkspace: store.addWorkspace(workspace()),
        setWorkspace: store.setWorkspace(home.id, { name: "Renamed" }),
        deleteWorkspace: store.deleteWorkspace(home.id),
        setUser: store.setUser(owner.email, true),
        deleteUser: store.deleteUser(owner.email, { now: 0, withActiveKeys: true }),
        addKey: store.addKey(home.id, { email: "new@example.org", newUserId: newId() }, toNewKey(added)),
        revokeKey: store.revokeKey(keys.active.stored.id, at),
        rotateKey: store.rotateKey(keys.active.stored.id, toReplacement(added), at),
        importWorkspace: store.importWorkspace({ ...own, prompts: [] }),
        editContent: store.editContent(home.id, () => Effect.succeed([edit, undefined] as const))
      }
      const before = yield* readEveryRow
      yield* sql`alter table audit_events rename to renamed_audit_events`
      for (const [name, change] of Object.entries(changes)) {
        assert.isTrue(Exit.hasDies(yield* Effect.exit(change)), name)
      }
      yield* sql`alter table renamed_audit_events rename to audit_events`
      assert.deepStrictEqual(yield* readEveryRow, before)
      yield* changes.revokeKey!
      assert.notDeepEqual(yield* readEveryRow, before)
    })

    test("exportWorkspace exports an unknown tier as Free, and fails with ArchiveTooLarge if the texts of a workspace exceed 256 MiB", function* () {
      const { importWorkspace } = yield* WorkspaceStore
      const sql = yield* PgClient.PgClient
      const own = archive({ prompts: [prompt()] })
      const home = own.workspace
      yield* importWorkspace(own)
      yield* sql`update workspaces set tier = 'enterprise' where id = ${home.id}`
      assert.deepStrictEqual((yield* exportArchive(home.id)).workspace, { ...home, tier: "free" })
      yield* sql`insert into prompt_versions (prompt_id, version_number, content)
            select ${own.prompts[0]!.id}, n, repeat('x', 1048576) from generate_series(1, 257) n`
      assert.deepStrictEqual(yield* Effect.flip(exportArchive(home.id)), ArchiveTooLarge)
      yield* importWorkspace(own)
    })

    test("importWorkspace imports the whole archive even if it needs many statements", function* () {
      const { importWorkspace } = yield* WorkspaceStore
      const sql = yield* PgClient.PgClient
      const fragments = ["x", "y", "z"].map((text) => fragment(text.repeat(1_000_000)))
      // A prompt's second version is the child of the first, which another statement may insert.
      const prompts = Array.from({ length: 6000 }, () => {
        const first = version(1)
        const versions = [version(2, { parent_version_id: first.id }), first]
        return prompt({ fragments: [fragmentBinding(fragments[0]!, 1)], versions })
      })
      const original = archive({ fragments, prompts })
      yield* importWorkspace(original)
      const counts =
        yield* sql`select count(*)::int as versions, count(distinct (f.id, p.id))::int as bindings
          from prompts p join prompt_versions v on v.prompt_id = p.id join prompt_fragments f on f.prompt_id = p.id
          where p.workspace_id = ${original.workspace.id}`
      assert.deepStrictEqual(counts, [{ versions: 12_000, bindings: 6000 }])
    })
  })
})
