import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { lockWorkspace } from "../../../../../src/adapters/outbound/postgres/administration/WorkspaceWriter.ts"
import { WorkspaceStore } from "../../../../../src/application/ports/WorkspaceStore.ts"
import type { Archive } from "../../../../../src/application/transfer/Archive.ts"
import {
  type ContentEdit,
  InvalidContent,
  type WorkspaceContent
} from "../../../../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import { inExportOrder } from "../../../../contracts/WorkspaceStore/support.ts"
import {
  archive,
  exportArchive,
  folder,
  makeEdit,
  prompt,
  sample,
  user,
  version,
  workspace
} from "../../../../support/archives.ts"
import { holdLocks, waitForBlocked, writeDuring } from "../../../../support/database/locks.ts"
import { openStoreAndClient } from "../../../../support/database/workspaceStore.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const test = makeTest(it.live)

/** Fails unless the effect completes within a second. An effect that takes longer waits for a lock. */
const withinOneSecond = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.timeout(effect, "1 second")

const exportFrom = (store: WorkspaceStore["Service"], workspace: WorkspaceId) =>
  Effect.provideService(exportArchive(workspace), WorkspaceStore, store)

/** Returns an edit that changes the title of one prompt and adds a version. */
const retitle = (content: WorkspaceContent, id: string): ContentEdit => {
  const found = content.prompts.find((prompt) => prompt.id === id)!
  const { next_version, parent_version_id: _, ...prompt } = found
  return makeEdit({ prompts: [{ ...prompt, title: "Revised", versions: [version(next_version)] }] })
}

const insertVersion =
  "insert into prompt_versions (prompt_id, version_number, content) values ($1, 2, 'Edited')"

const listVersions = ({ prompts }: Archive) =>
  prompts[0]!.versions.map(({ version_number, content }) => `${version_number} ${content}`)

test("editContent waits for an import of its workspace, and reads what the import wrote", function* () {
  const { store, other } = yield* openStoreAndClient
  const own = archive()
  yield* store.importWorkspace(own)
  const imported = [
    [lockWorkspace, [own.workspace.id]],
    ["insert into folders (workspace_id, name) values ($1, 'Imported')", [own.workspace.id]]
  ] as const
  const read = store.editContent(own.workspace.id, ({ folders }) =>
    Effect.succeed([makeEdit(), folders.map(({ name }) => name)] as const)
  )
  assert.deepStrictEqual(yield* writeDuring(other, imported, read), Result.succeed(["Imported"]))
})

test("security changes and changes of other workspaces wait neither for a blocked import nor for an edit that waits for the import", function* () {
  const { store, other } = yield* openStoreAndClient
  const [{ archive: own, keys }, theirs] = [sample(), sample().archive]
  for (const each of [own, theirs]) yield* store.importWorkspace(each)
  const [deleted, ...changedPrompts] = own.prompts
  const [key, home, mine] = [keys.active.stored, own.workspace, changedPrompts[0]!.id]
  // The import waits to delete this row. Meanwhile, the import holds the locks of all its other changes of content.
  const release = yield* holdLocks(other, ["select from prompts where id = $1 for update", [deleted!.id]])
  const changed: Archive = {
    ...own,
    workspace: { ...home, name: "Renamed" },
    api_keys: own.api_keys.map((key) => ({ ...key, name: "Renamed" })),
    users: own.users.map((user) => ({ ...user, must_reset_password: true })),
    prompts: changedPrompts.map((prompt) => ({ ...prompt, title: "Changed" }))
  }
  const imported = yield* Effect.forkScoped(store.importWorkspace(changed))
  yield* waitForBlocked(other)
  const edited = yield* Effect.forkScoped(
    store.editContent(home.id, (content) => Effect.succeed([retitle(content, mine), undefined] as const))
  )
  const [first, second] = theirs.prompts
  for (const [statement, id] of [
    ["update api_keys set revoked_at = now() where id = $1", key.id],
    ["update users set must_reset_password = true where id = $1", key.created_by],
    ["update api_keys set last_used_at = now() where id = $1", key.id],
    ["update workspaces set billing_status = 'disputed', tier = 'free' where id = $1", home.id],
    ["update prompts set title = 'Edited', updated_at = now() where id = $1", first!.id],
    ["insert into folders (workspace_id, name) values ($1, 'New')", theirs.workspace.id],
    ["delete from prompt_versions where prompt_id = $1", second!.id]
  ] as const)
    yield* withinOneSecond(other.unsafe(statement, [id]))
  yield* withinOneSecond(store.importWorkspace({ ...theirs, prompts: [] }))
  yield* release
  for (const fiber of [imported, edited]) yield* Fiber.join<unknown, unknown>(fiber)
  const after = yield* exportFrom(store, home.id)
  const { name, revoked_at } = after.api_keys.find(({ id }) => id === key.id)!
  assert.deepStrictEqual([name, revoked_at === null], ["Renamed", false])
  const expected = { ...home, name: "Renamed", tier: "free", billing_status: "disputed" } as const
  assert.deepStrictEqual(after.workspace, expected)
  const titles = new Map(changedPrompts.map(({ id }) => [id, id === mine ? "Revised" : "Changed"]))
  assert.deepStrictEqual(new Map(after.prompts.map(({ id, title }) => [id, title])), titles)
})

for (const [what, statement, versions] of [
  ["a version whose number the edit also uses", insertVersion, ["2 Edited", "3 Content of version 3"]],
  [
    "a prompt of the edit",
    "update prompts set current_content = 'Edited', description = 'Edited' where id = $1",
    ["2 Content of version 2"]
  ]
] as const)
  test(`editContent retries if, before its write, an editor writes ${what}`, function* () {
    const { store, other } = yield* openStoreAndClient
    const own = archive({ prompts: [prompt({ versions: [version(1)] })] })
    yield* store.importWorkspace(own)
    const { id } = own.prompts[0]!
    const seen: Array<string> = []
    yield* store.editContent(own.workspace.id, (content) =>
      Effect.gen(function* () {
        if (seen.length === 0) yield* Effect.orDie(other.unsafe(statement, [id]))
        seen.push(content.prompts[0]!.description)
        return [retitle(content, id), undefined] as const
      })
    )
    assert.lengthOf(seen, 2)
    const after = yield* exportFrom(store, own.workspace.id)
    assert.deepStrictEqual(listVersions(after), ["1 Content of version 1", ...versions])
    const { title, description } = after.prompts[0]!
    assert.deepStrictEqual([title, description], ["Revised", seen[1]])
  })

test("an import rejects an email and an id that another transaction adds at the same time", function* () {
  const { store, other } = yield* openStoreAndClient
  const [theirs, owner] = [workspace(), user()]
  yield* store.importWorkspace(archive({ workspace: theirs }))
  const taken = prompt({ versions: [version(1)] })
  const isForeign = "belongs to another workspace"
  for (const [statement, own, problems] of [
    [
      ["insert into users (email) values ($1)", [owner.email]],
      archive({ users: [owner] }),
      [{ path: "users[0].email", message: "belongs to another user" }]
    ],
    [
      ["insert into prompts (id, workspace_id) values ($1, $2)", [taken.id, theirs.id]],
      archive({ prompts: [taken] }),
      [
        { path: "prompts[0].id", message: isForeign },
        { path: "prompts[0].versions[0].id", message: isForeign }
      ]
    ]
  ] as const)
    assert.deepStrictEqual(
      yield* writeDuring(other, [statement], store.importWorkspace(own)),
      Result.fail(InvalidContent(problems))
    )
  const [stored] = (yield* exportFrom(store, theirs.id)).prompts
  assert.deepStrictEqual([stored!.id, stored!.title, stored!.versions], [taken.id, "", []])
})

test("concurrent imports of two workspaces with the same new users succeed", function* () {
  const { store } = yield* openStoreAndClient
  for (let round = 0; round < 5; round++) {
    const users = [user({ must_reset_password: true }), user()]
    const imported = [users, users.toReversed()].map((users) => archive({ users, folders: [folder()] }))
    yield* Effect.forEach(imported, (each) => store.importWorkspace(each), { concurrency: 2 })
  }
})

test("after concurrent imports of one workspace, the workspace has the content of exactly one of the archives", function* () {
  const { store } = yield* openStoreAndClient
  for (let round = 0; round < 5; round++) {
    const accounts = { workspace: workspace(), users: [], api_keys: [] }
    const archives = [sample(), sample()].map(({ archive }): Archive => ({ ...archive, ...accounts }))
    yield* Effect.forEach(archives, (each) => store.importWorkspace(each), { concurrency: 2 })
    assert.deepInclude(archives.map(inExportOrder), yield* exportFrom(store, accounts.workspace.id))
  }
})

for (const changesPrompt of [true, false])
  test(`an import that ${changesPrompt ? "changes a prompt waits for" : "leaves a prompt unchanged does not wait for"} a concurrent edit of the prompt, and keeps the version of the edit`, function* () {
    const { store, other } = yield* openStoreAndClient
    const own = archive({ prompts: [prompt({ versions: [version(1)] }), prompt()] })
    yield* store.importWorkspace(own)
    const [edited] = own.prompts
    const commit = yield* holdLocks(
      other,
      [insertVersion, [edited!.id]],
      ["update prompts set current_content = 'Edited', current_version = 2 where id = $1", [edited!.id]]
    )
    const changed = changesPrompt ? { ...edited!, title: "Imported" } : edited!
    const imported = yield* Effect.forkScoped(store.importWorkspace({ ...own, prompts: [changed] }))
    if (changesPrompt) yield* waitForBlocked(other)
    else yield* Fiber.join(imported)
    yield* commit
    yield* Fiber.join(imported)
    const after = yield* exportFrom(store, own.workspace.id)
    assert.deepStrictEqual(listVersions(after), ["1 Content of version 1", "2 Edited"])
    assert.deepStrictEqual(
      after.prompts.map(({ title, current_content }) => [title, current_content]),
      [changesPrompt ? ["Imported", edited!.current_content] : [edited!.title, "Edited"]]
    )
  })
