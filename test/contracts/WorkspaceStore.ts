import { assert, layer as suite } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type Archive, type ArchivePrompt, BadArchive, partsOf } from "../../src/application/Archive.ts"
import { archiveOfExport, type ExportPart } from "../../src/application/ArchiveExport.ts"
import { KeyStore } from "../../src/application/KeyStore.ts"
import { PromptRepo } from "../../src/application/PromptRepo.ts"
import { type ContentEdit, contentOf, type PromptEdit } from "../../src/application/WorkspaceContent.ts"
import {
  KeyNotFound,
  type NewKey,
  UserNotFound,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../src/application/WorkspaceStore.ts"
import { type ApiKeyId, InvalidKey, type UserId } from "../../src/domain/ApiKey.ts"
import {
  type FolderId,
  type PromptId,
  PromptNotFound,
  type TagId,
  type WorkspaceId
} from "../../src/domain/Prompt.ts"
import type { VersionId } from "../../src/domain/Version.ts"
import {
  archive,
  archives,
  folder,
  fragment,
  instant,
  type Key,
  key,
  newId,
  prompt,
  sample,
  tag,
  use,
  user,
  version,
  workspace
} from "../support/archives.ts"
import { listOf, promptOf, sourceOf, versionSummaryOf, versionsOf } from "../support/model.ts"

const everything = { page: 1, per_page: 100 }

const load = (archive: Archive) =>
  Effect.flatMap(WorkspaceStore, (workspaces) => workspaces.importArchive(archive))

const find = ({ stored }: Key) => Effect.flatMap(KeyStore, (keys) => keys.find(stored.key_hash))

const newKey = ({ stored }: Key): NewKey => {
  const { workspace_id: _, created_by: __, revoked_at: ___, ...rest } = stored
  return rest
}

const addKey = (workspace: WorkspaceId, email: string, newUserId: UserId, made: Key) =>
  Effect.flatMap(WorkspaceStore, (workspaces) =>
    workspaces.addKey(workspace, { email, newUserId }, newKey(made))
  )

/** The paths at which an import is refused, in the order of their text. */
const refusedAt = (archive: Archive) =>
  Effect.map(Effect.flip(load(archive)), (refusal) =>
    refusal._tag === "BadArchive" ? refusal.faults.map(({ path }) => path).sort() : refusal
  )

/** Says that a workspace reads exactly as an archive has it. */
const assertReadsLike = Effect.fnUntraced(function* (archive: Archive) {
  const repo = yield* PromptRepo
  const id = archive.workspace.id
  const whole = listOf(archive, {})
  assert.deepStrictEqual(yield* repo.list(id, {}, everything), { items: whole, total: whole.length })
  for (const { name: tag } of archive.tags) {
    assert.deepStrictEqual((yield* repo.list(id, { tag }, everything)).items, listOf(archive, { tag }))
  }
  for (const { id: folder_id } of archive.folders) {
    assert.deepStrictEqual(
      (yield* repo.list(id, { folder_id }, everything)).items,
      listOf(archive, { folder_id })
    )
  }
  for (const prompt of archive.prompts) {
    assert.deepStrictEqual(yield* repo.get(id, prompt.id), promptOf(archive, prompt))
    assert.deepStrictEqual(yield* repo.getSource(id, prompt.id), sourceOf(archive, prompt))
    const versions = versionsOf(prompt)
    assert.deepStrictEqual(yield* repo.listVersions(id, prompt.id, undefined, everything), {
      items: versions.map(versionSummaryOf),
      total: versions.length
    })
    for (const version of versions) {
      assert.deepStrictEqual(
        yield* repo.getVersion(id, prompt.id, version.version_number, undefined),
        version
      )
    }
  }
})

const byId = (a: { readonly id: string }, b: { readonly id: string }): number => (a.id < b.id ? -1 : 1)

/** An archive as an export has it, but for the users who own no key of it. */
const inOrder = (archive: Archive): Archive => ({
  ...archive,
  users: archive.users.toSorted(byId),
  api_keys: archive.api_keys.toSorted(byId),
  folders: archive.folders.toSorted(byId),
  tags: archive.tags.toSorted(byId),
  fragments: archive.fragments.toSorted(byId),
  prompts: archive.prompts.toSorted(byId).map((prompt) => ({
    ...prompt,
    tags: prompt.tags.toSorted(),
    fragments: prompt.fragments.toSorted(byId).sort((a, b) => a.position - b.position),
    versions: prompt.versions.toSorted((a, b) => a.version_number - b.version_number)
  }))
})

const exported = Effect.fnUntraced(function* (workspace: WorkspaceId) {
  const { exportArchive } = yield* WorkspaceStore
  const parts: Array<ExportPart> = []
  yield* exportArchive(workspace, (some) => Effect.sync(() => void parts.push(...some)))
  return archiveOfExport(parts)
})

/** Something of each kind whose id an archive holds, so that every id can be another's. */
const oneOfEach = () => {
  const [drawer, label, snippet] = [folder(), tag("label"), fragment("Snippet")]
  const one = prompt({
    folder_id: drawer.id,
    tags: [label.id],
    fragments: [use(snippet, 1)],
    versions: [version(1)]
  })
  return archive({ folders: [drawer], tags: [label], fragments: [snippet], prompts: [one] })
}

const emptyEdit: ContentEdit = { folders: [], tags: [], fragments: [], removedFragments: [], prompts: [] }

const naturals = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })))

/** An edit of a stored workspace, made of another archive's content, and what the workspace is after it. */
const editOf = (
  before: Archive,
  other: Archive,
  picks: ReadonlyArray<number>
): { readonly edit: ContentEdit; readonly after: Archive } => {
  const pick = (index: number): number => picks[index % Math.max(1, picks.length)] ?? 0
  const removed = new Set(before.fragments.filter((_, i) => pick(i) % 5 === 0).map(({ id }) => id))
  const rewritten = before.fragments
    .filter(({ id }, i) => !removed.has(id) && pick(i + 1) % 2 === 0)
    .map((fragment) => ({ ...fragment, content: `${fragment.content}!` }))
  const names = new Set(before.tags.map(({ name }) => name))
  const tags = other.tags.filter(({ name }) => !names.has(name))
  const fragments = [...rewritten, ...other.fragments]
  const allTags = [...before.tags, ...tags].map(({ id }) => id)
  const allFragments = [...before.fragments, ...other.fragments].filter(({ id }) => !removed.has(id))
  const folders = [...before.folders, ...other.folders]
  const withoutRemoved = (uses: ArchivePrompt["fragments"]) =>
    uses.filter(({ fragment_id }) => !removed.has(fragment_id))

  const edits: Array<PromptEdit> = []
  const revised = before.prompts.map((prompt, i): ArchivePrompt => {
    const kept = { ...prompt, fragments: withoutRemoved(prompt.fragments) }
    if (pick(i) % 3 === 0) return kept
    const { tags: _, fragments: __, versions, ...row } = prompt
    const last = Math.max(0, ...versions.map(({ version_number }) => version_number))
    const edit: PromptEdit = {
      row: {
        ...row,
        title: `${row.title}!`,
        is_archived: pick(i + 1) % 2 === 0,
        folder_id: folders[pick(i)]?.id ?? null
      },
      tags: pick(i + 2) % 2 === 0 ? allTags.filter((_, n) => pick(n + i) % 2 === 0) : undefined,
      fragments:
        pick(i + 3) % 2 === 0
          ? allFragments
              .filter((_, n) => pick(n + i) % 2 === 0)
              .map((of, n) => use(of, n, n === 0 ? { id: prompt.fragments[0]?.id ?? newId() } : {}))
          : undefined,
      version:
        pick(i + 4) % 2 === 0 ? version(last + 1, { parent_version_id: versions[0]?.id ?? null }) : undefined
    }
    edits.push(edit)
    return {
      ...edit.row,
      tags: edit.tags ?? prompt.tags,
      fragments: edit.fragments ?? kept.fragments,
      versions: [...versions, ...(edit.version === undefined ? [] : [edit.version])]
    }
  })
  const added = other.prompts.map((prompt): ArchivePrompt => {
    const { tags: own, fragments: uses, versions, ...row } = prompt
    const edit: PromptEdit = {
      row: { ...row },
      tags: own.filter((id) => allTags.includes(id)),
      fragments: uses,
      version: versions.length === 0 ? undefined : { ...versions[0]!, parent_version_id: null }
    }
    edits.push(edit)
    return {
      ...row,
      tags: edit.tags!,
      fragments: uses,
      versions: edit.version === undefined ? [] : [edit.version]
    }
  })
  const rewrittenById = new Map(rewritten.map((fragment) => [fragment.id, fragment]))
  return {
    edit: {
      folders: other.folders,
      tags,
      fragments,
      removedFragments: [...removed],
      prompts: edits
    },
    after: {
      ...before,
      folders,
      tags: [...before.tags, ...tags],
      fragments: allFragments.map((fragment) => rewrittenById.get(fragment.id) ?? fragment),
      prompts: [...revised, ...added]
    }
  }
}

/** What every adapter of `WorkspaceStore` must do. */
export const contract = <E>(
  name: string,
  layer: Layer.Layer<PromptRepo | KeyStore | WorkspaceStore, E>
): void =>
  suite(layer, { excludeTestServices: true, timeout: "60 seconds" })(`WorkspaceStore: ${name}`, (it) => {
    it.effect("lists every workspace that there is, by id", () =>
      Effect.gen(function* () {
        const { workspaces, addWorkspace } = yield* WorkspaceStore
        const [imported, added] = [archive(), workspace({ name: "Added", tier: "free" })]
        yield* load(imported)
        yield* load(imported)
        yield* addWorkspace(added)
        const listed = yield* workspaces
        const ids = listed.map(({ id }) => id)
        assert.deepStrictEqual(ids, ids.toSorted())
        // Others may be using the same database.
        assert.deepStrictEqual(
          listed.filter(({ id }) => [imported.workspace.id, added.id].includes(id)),
          [imported.workspace, added].sort((a, b) => (a.id < b.id ? -1 : 1))
        )
      })
    )

    it.effect("adds a workspace without content, once", () =>
      Effect.gen(function* () {
        const { addWorkspace } = yield* WorkspaceStore
        const added = workspace()
        yield* addWorkspace(added)
        yield* assertReadsLike(archive({ workspace: added }))
        assert.isTrue(Exit.hasDies(yield* Effect.exit(addWorkspace(added))))
      })
    )

    it.effect("changes of a workspace what is given, and nothing of its content", () =>
      Effect.gen(function* () {
        const { setWorkspace } = yield* WorkspaceStore
        const { archive: own, keys } = sample({ tier: "free" })
        const home = own.workspace
        yield* load(own)
        const set = (changes: Parameters<typeof setWorkspace>[1]) => setWorkspace(home.id, changes)
        assert.deepStrictEqual(yield* set({}), home)
        assert.deepStrictEqual(yield* set({ tier: "team" }), { ...home, tier: "team" })
        const changed = { ...home, tier: "team", billing_status: "disputed" } as const
        assert.deepStrictEqual(yield* set({ billing_status: "disputed" }), changed)
        assert.deepStrictEqual((yield* find(keys.active)).workspace, {
          id: home.id,
          tier: "team",
          billing_status: "disputed"
        })
        yield* assertReadsLike(own)
        assert.deepStrictEqual(yield* set({ tier: "free", billing_status: "active" }), home)
        assert.deepStrictEqual(
          yield* Effect.flip(setWorkspace(newId<WorkspaceId>(), { tier: "team" })),
          WorkspaceNotFound
        )
      })
    )

    it.effect("lists the owners of a workspace's keys, each once, and its keys", () =>
      Effect.gen(function* () {
        const { users, keys } = yield* WorkspaceStore
        const { archive: own } = sample()
        yield* load(own)
        yield* load(sample().archive)
        const listed = own.api_keys
          .filter(({ workspace_id }) => workspace_id !== null)
          .map(({ workspace_id: _, created_by, key_hash: __, ...info }) => ({
            ...info,
            owner: own.users.find(({ id }) => id === created_by)!.email,
            last_used_at: null
          }))
          .sort((a, b) => (a.id < b.id ? -1 : 1))
        assert.strictEqual(listed.length, 5)
        assert.deepStrictEqual(yield* keys(own.workspace.id), listed)
        assert.deepStrictEqual(
          yield* users(own.workspace.id),
          own.users.toSorted((a, b) => (a.id < b.id ? -1 : 1))
        )
        const empty = workspace()
        yield* load(archive({ workspace: empty, users: [user()] }))
        assert.deepStrictEqual(yield* users(empty.id), [])
        assert.deepStrictEqual(yield* keys(empty.id), [])
        const nowhere = newId<WorkspaceId>()
        assert.deepStrictEqual(yield* Effect.flip(users(nowhere)), WorkspaceNotFound)
        assert.deepStrictEqual(yield* Effect.flip(keys(nowhere)), WorkspaceNotFound)
      })
    )

    it.effect("forces a reset on a user by email in any case, and lifts it", () =>
      Effect.gen(function* () {
        const { setUser } = yield* WorkspaceStore
        const [home, owner, other] = [workspace(), user(), user()]
        const [own, others] = [key(home.id, owner), key(home.id, other)]
        yield* load(
          archive({ workspace: home, users: [owner, other], api_keys: [own.stored, others.stored] })
        )
        const forced = { ...owner, must_reset_password: true }
        for (const [on, expected] of [
          [true, forced],
          [true, forced],
          [false, owner]
        ] as const) {
          assert.deepStrictEqual(yield* setUser(owner.email.toUpperCase(), on), expected)
          assert.strictEqual((yield* find(own)).owner_must_reset, on)
          assert.isFalse((yield* find(others)).owner_must_reset)
        }
        assert.deepStrictEqual(yield* Effect.flip(setUser(user().email, true)), UserNotFound)
      })
    )

    it.effect("revokes one key, once and for good, of whatever workspace or of none", () =>
      Effect.gen(function* () {
        const { revokeKey, keys } = yield* WorkspaceStore
        const { archive: own, keys: made } = sample()
        yield* load(own)
        const [first, later] = [instant("2026-04-01T00:00:00.000Z"), instant("2026-04-02T00:00:00.000Z")]
        const before = yield* keys(own.workspace.id)
        const active = before.find(({ id }) => id === made.active.stored.id)!
        const revoked = { ...active, revoked_at: first }
        assert.deepStrictEqual(yield* revokeKey(active.id, first), revoked)
        assert.deepStrictEqual(yield* revokeKey(active.id, later), revoked)
        assert.deepStrictEqual(
          yield* keys(own.workspace.id),
          before.map((info) => (info.id === active.id ? revoked : info))
        )
        assert.isTrue((yield* find(made.active)).revoked)
        assert.isFalse((yield* find(made.second)).revoked)
        assert.strictEqual((yield* revokeKey(made.legacy.stored.id, later)).revoked_at, later)
        assert.isTrue((yield* find(made.legacy)).revoked)
        assert.deepStrictEqual(yield* Effect.flip(revokeKey(newId<ApiKeyId>(), first)), KeyNotFound)
      })
    )

    it.effect.prop(
      "makes any workspace out of any other, and changes nothing the second time",
      { from: archives, to: archives },
      Effect.fnUntraced(function* ({ from, to }) {
        const target: Archive = { ...to, workspace: { ...to.workspace, id: from.workspace.id } }
        yield* load(from)
        yield* assertReadsLike(from)
        yield* load(target)
        yield* assertReadsLike(target)
        yield* load(target)
        yield* assertReadsLike(target)
        const repo = yield* PromptRepo
        for (const { id } of from.prompts) {
          if (target.prompts.some((prompt) => prompt.id === id)) continue
          assert.deepStrictEqual(yield* Effect.flip(repo.get(from.workspace.id, id)), PromptNotFound)
        }
        yield* load(from)
        yield* assertReadsLike(from)
      }),
      { arbitrary: { runs: 15, maxShrinks: 50 } }
    )

    it.effect("reads the same after the same import once, twice and twice at a time", () =>
      Effect.gen(function* () {
        const { archive, keys } = sample()
        const records = Effect.forEach(Object.values(keys), find)
        yield* load(archive)
        yield* assertReadsLike(archive)
        const before = yield* records
        yield* load(archive)
        yield* Effect.all([load(archive), load(archive)], { concurrency: 2 })
        yield* assertReadsLike(archive)
        assert.deepStrictEqual(yield* records, before)
      })
    )

    it.effect("takes two first imports of one workspace at a time", () =>
      Effect.gen(function* () {
        const { archive, keys } = sample()
        yield* Effect.all([load(archive), load(archive)], { concurrency: 2 })
        yield* assertReadsLike(archive)
        assert.strictEqual((yield* find(keys.active)).id, keys.active.stored.id)
      })
    )

    it.effect("replaces what stays, and lets go what the archive lacks", () =>
      Effect.gen(function* () {
        const before = sample().archive
        const [kept, ...gone] = before.prompts as readonly [ArchivePrompt, ...Array<ArchivePrompt>]
        const changed: ArchivePrompt = {
          ...kept,
          title: "Changed",
          description: "Changed",
          current_content: "Changed",
          prompt_type: "few-shot",
          target_model: "changed",
          intent: "changed",
          current_version: 9,
          folder_id: null,
          is_favorite: !kept.is_favorite,
          sort_order: 7,
          created_at: instant("2025-01-01T00:00:00.000Z"),
          updated_at: instant("2025-01-02T00:00:00.000Z"),
          tags: kept.tags.slice(1),
          fragments: kept.fragments.slice(1).map((use) => ({
            ...use,
            position: 10 - use.position,
            variable_overrides: { changed: true }
          })),
          versions: kept.versions
            .filter(({ version_number }) => version_number !== 3)
            .map((version) => ({
              ...version,
              content: "Changed",
              change_summary: "Changed",
              change_source: "changed",
              metadata: { changed: true },
              created_at: instant("2025-01-02T00:00:00.000Z")
            }))
        }
        const after: Archive = {
          ...before,
          folders: before.folders.slice(1),
          tags: before.tags.map((tag) => ({ ...tag, name: `${tag.name}!`, color: "#abcdef" })),
          fragments: before.fragments.map((fragment) => ({ ...fragment, content: `${fragment.content}!` })),
          prompts: [changed, prompt({ title: "New" })]
        }
        yield* load(before)
        yield* load(after)
        yield* assertReadsLike(after)
        const repo = yield* PromptRepo
        for (const { id } of gone) {
          assert.deepStrictEqual(yield* Effect.flip(repo.get(before.workspace.id, id)), PromptNotFound)
        }
        for (const { name: tag } of before.tags) {
          assert.strictEqual((yield* repo.list(before.workspace.id, { tag }, everything)).total, 0)
        }
      })
    )

    it.effect("lets names, numbers and rows change hands within a workspace", () =>
      Effect.gen(function* () {
        const [a, b] = [tag("a"), tag("b")]
        const snippet = fragment("{{x}}")
        const [one, two] = [version(1), version(2)]
        const [left, right] = [use(snippet, 1), use(snippet, 2)]
        const first = prompt({ tags: [a.id], fragments: [left, right], versions: [one, two] })
        const second = prompt({ tags: [b.id] })
        const before = archive({ tags: [a, b], fragments: [snippet], prompts: [first, second] })
        const swapped = [
          { ...one, version_number: two.version_number, parent_version_id: two.id },
          { ...two, version_number: one.version_number }
        ]
        const after: Archive = {
          ...before,
          tags: [
            { ...a, name: "b" },
            { ...b, name: "a" }
          ],
          prompts: [
            { ...first, fragments: [right], versions: [] },
            { ...second, fragments: [{ ...left, position: 3 }], versions: swapped }
          ]
        }
        yield* load(before)
        yield* load(after)
        yield* assertReadsLike(after)
        yield* load(before)
        yield* assertReadsLike(before)
      })
    )

    it.effect("empties a workspace whose archive is empty", () =>
      Effect.gen(function* () {
        const before = sample().archive
        const after = archive({ workspace: before.workspace })
        yield* load(before)
        yield* load(after)
        yield* assertReadsLike(after)
      })
    )

    it.effect("leaves other workspaces as they are", () =>
      Effect.gen(function* () {
        const [own, other] = [sample(), sample()]
        yield* load(other.archive)
        yield* load(own.archive)
        yield* load(archive({ workspace: own.archive.workspace }))
        yield* assertReadsLike(other.archive)
        assert.deepStrictEqual(yield* find(other.keys.active), {
          id: other.keys.active.stored.id,
          revoked: false,
          owner_must_reset: false,
          workspace: {
            id: other.archive.workspace.id,
            tier: other.archive.workspace.tier,
            billing_status: other.archive.workspace.billing_status
          }
        })
      })
    )

    it.effect("keeps the tier and billing of a workspace that is there", () =>
      Effect.gen(function* () {
        const [home, owner] = [workspace({ tier: "free", billing_status: "disputed" }), user()]
        const own = key(home.id, owner)
        const before = archive({ workspace: home, users: [owner], api_keys: [own.stored] })
        yield* load(before)
        yield* load({
          ...before,
          workspace: { ...home, name: "Renamed", tier: "team", billing_status: "active" }
        })
        assert.deepStrictEqual((yield* find(own)).workspace, {
          id: home.id,
          tier: "free",
          billing_status: "disputed"
        })
      })
    )

    it.effect("never takes a forced reset back, in whatever workspace the user comes again", () =>
      Effect.gen(function* () {
        const [home, owner] = [workspace(), user()]
        const own = key(home.id, owner)
        const free = archive({ workspace: home, users: [owner], api_keys: [own.stored] })
        const forced = { ...owner, must_reset_password: true }
        const mustReset = Effect.map(find(own), ({ owner_must_reset }) => owner_must_reset)
        yield* load(free)
        assert.isFalse(yield* mustReset)
        yield* load(archive({ users: [forced] }))
        assert.isTrue(yield* mustReset)
        yield* load(free)
        yield* load(archive({ users: [owner] }))
        assert.isTrue(yield* mustReset)
      })
    )

    it.effect("never takes a revocation back", () =>
      Effect.gen(function* () {
        const [home, owner] = [workspace(), user()]
        const own = key(home.id, owner)
        const active = archive({ workspace: home, users: [owner], api_keys: [own.stored] })
        const revoked_at = instant("2026-03-01T00:00:00.000Z")
        yield* load(active)
        yield* load({ ...active, api_keys: [{ ...own.stored, revoked_at }] })
        yield* load(active)
        assert.isTrue((yield* find(own)).revoked)
      })
    )

    it.effect("keeps users and keys that an archive lacks", () =>
      Effect.gen(function* () {
        const { archive: before, keys } = sample()
        const records = Effect.forEach(Object.values(keys), find)
        yield* load(before)
        const known = yield* records
        yield* load(archive({ workspace: before.workspace }))
        assert.deepStrictEqual(yield* records, known)
      })
    )

    it.effect("adds keys and users to a workspace that is there", () =>
      Effect.gen(function* () {
        const before = sample().archive
        const owner = user({ must_reset_password: true })
        const own = key(before.workspace.id, owner)
        yield* load(before)
        yield* load({ ...before, users: [owner], api_keys: [own.stored] })
        assert.deepStrictEqual(yield* find(own), {
          id: own.stored.id,
          revoked: false,
          owner_must_reset: true,
          workspace: {
            id: before.workspace.id,
            tier: before.workspace.tier,
            billing_status: before.workspace.billing_status
          }
        })
      })
    )

    it.effect("keeps the hash, the owner and the workspace of a key that is there", () =>
      Effect.gen(function* () {
        const home = workspace()
        const [owner, other] = [user({ must_reset_password: true }), user()]
        const revoked_at = instant("2026-03-01T00:00:00.000Z")
        const [held, legacy, revoked] = [
          key(home.id, owner),
          key(null, other),
          key(home.id, other, { revoked_at })
        ]
        const before = archive({
          workspace: home,
          users: [owner, other],
          api_keys: [held.stored, legacy.stored, revoked.stored]
        })
        yield* load(before)
        const records = Effect.forEach([held, legacy, revoked], find)
        const known = yield* records
        const rehashed = key(home.id, other)
        yield* load({
          ...before,
          api_keys: [
            { ...held.stored, created_by: other.id, name: "Renamed" },
            { ...legacy.stored, workspace_id: home.id },
            { ...revoked.stored, key_hash: rehashed.stored.key_hash }
          ]
        })
        assert.deepStrictEqual(yield* records, known)
        assert.deepStrictEqual(yield* Effect.flip(find(rehashed)), InvalidKey)
      })
    )

    it.effect("takes a user again whose email is written in another case", () =>
      Effect.gen(function* () {
        const owner = user()
        const home = workspace()
        const own = key(home.id, owner)
        yield* load(archive({ users: [owner] }))
        yield* load(
          archive({
            workspace: home,
            users: [{ ...owner, email: owner.email.toUpperCase() }],
            api_keys: [own.stored]
          })
        )
        assert.strictEqual((yield* find(own)).id, own.stored.id)
      })
    )

    it.effect("refuses users whose id or email is another user's", () =>
      Effect.gen(function* () {
        const [ada, ben, eve] = [user(), user(), user()]
        yield* load(archive({ users: [ada, ben] }))
        const attempt = (...users: Archive["users"]) => refusedAt(archive({ users }))
        assert.deepStrictEqual(yield* attempt(eve, { ...ada, email: user().email }), ["users[1].id"])
        assert.deepStrictEqual(yield* attempt(eve, { ...user(), email: ada.email }), ["users[1].email"])
        assert.deepStrictEqual(yield* attempt({ ...user(), email: ada.email.toUpperCase() }), [
          "users[0].email"
        ])
        assert.deepStrictEqual(yield* attempt({ ...ada, email: ben.email }, { ...ben, email: ada.email }), [
          "users[0].email",
          "users[0].id",
          "users[1].email",
          "users[1].id"
        ])
      })
    )

    it.effect("refuses keys whose hash is another key's, and keys of another workspace", () =>
      Effect.gen(function* () {
        const { archive: other, keys } = sample()
        yield* load(other)
        const [home, owner] = [workspace(), user()]
        const attempt = (...api_keys: Archive["api_keys"]) =>
          refusedAt(archive({ workspace: home, users: [owner], api_keys }))
        const fresh = key(home.id, owner).stored
        for (const { stored } of [keys.active, keys.revoked, keys.legacy]) {
          assert.deepStrictEqual(
            yield* attempt(fresh, { ...key(home.id, owner).stored, key_hash: stored.key_hash }),
            ["api_keys[1].key_hash"]
          )
        }
        assert.deepStrictEqual(yield* attempt({ ...fresh, id: keys.active.stored.id }), ["api_keys[0].id"])
        assert.deepStrictEqual(
          yield* Effect.flip(find({ plaintext: keys.active.plaintext, stored: fresh })),
          InvalidKey
        )
      })
    )

    it.effect("refuses ids that are another workspace's, each with its path", () =>
      Effect.gen(function* () {
        const other = oneOfEach()
        yield* load(other)
        const own = oneOfEach()
        const [drawer, label, snippet, one] = [
          other.folders[0]!,
          other.tags[0]!,
          other.fragments[0]!,
          other.prompts[0]!
        ]
        const mine = own.prompts[0]!
        const attempts: ReadonlyArray<readonly [Partial<Archive>, Array<string>]> = [
          [{ folders: [...own.folders, { ...drawer, name: "Taken" }] }, ["folders[1].id"]],
          [{ tags: [...own.tags, { ...label, name: "taken" }] }, ["tags[1].id"]],
          [{ fragments: [...own.fragments, { ...snippet, name: "Taken" }] }, ["fragments[1].id"]],
          [{ prompts: [mine, prompt({ id: one.id })] }, ["prompts[1].id"]],
          [
            {
              prompts: [
                prompt(),
                {
                  ...mine,
                  fragments: [...mine.fragments, use(own.fragments[0]!, 1, { id: one.fragments[0]!.id })]
                }
              ]
            },
            ["prompts[1].fragments[1].id"]
          ],
          [
            { prompts: [{ ...mine, versions: [version(7), version(8, { id: one.versions[0]!.id })] }] },
            ["prompts[0].versions[1].id"]
          ],
          [
            { ...other, workspace: own.workspace },
            [
              "folders[0].id",
              "fragments[0].id",
              "prompts[0].fragments[0].id",
              "prompts[0].id",
              "prompts[0].versions[0].id",
              "tags[0].id"
            ]
          ]
        ]
        for (const [over, paths] of attempts) {
          assert.deepStrictEqual(yield* refusedAt({ ...own, ...over }), paths)
        }
        yield* assertReadsLike(other)
        yield* assertReadsLike(archive({ workspace: own.workspace }))
      })
    )

    it.effect("changes nothing where it refuses", () =>
      Effect.gen(function* () {
        const taken = oneOfEach()
        yield* load(taken)
        const { archive: before, keys } = sample()
        yield* load(before)
        const records = Effect.forEach(Object.values(keys), find)
        const known = yield* records
        const stranger = user()
        const added = key(before.workspace.id, stranger)
        const refused: Archive = {
          ...before,
          users: [...before.users.map((user) => ({ ...user, must_reset_password: true })), stranger],
          api_keys: [
            ...before.api_keys.map((key) => ({ ...key, revoked_at: instant("2026-03-01T00:00:00.000Z") })),
            added.stored
          ],
          folders: [],
          tags: [],
          fragments: [],
          prompts: [prompt(), prompt({ id: taken.prompts[0]!.id })]
        }
        assert.deepStrictEqual(yield* refusedAt(refused), ["prompts[1].id"])
        yield* assertReadsLike(before)
        yield* assertReadsLike(taken)
        assert.deepStrictEqual(yield* records, known)
        assert.deepStrictEqual(yield* Effect.flip(find(added)), InvalidKey)
        yield* load(archive({ users: [{ ...stranger, id: newId<UserId>() }] }))

        const home = workspace()
        assert.deepStrictEqual(yield* refusedAt({ ...refused, workspace: home, users: [], api_keys: [] }), [
          "prompts[1].id"
        ])
        const owner = user()
        assert.deepStrictEqual(
          yield* Effect.flip(addKey(home.id, owner.email, owner.id, key(home.id, owner))),
          WorkspaceNotFound
        )
      })
    )

    it.effect.prop(
      "exports any workspace as what it imports, in one order, which imports as the same again",
      { made: archives },
      Effect.fnUntraced(function* ({ made }) {
        yield* load(made)
        const { users: _, ...content } = inOrder(made)
        const expected = { ...content, users: [] }
        assert.deepStrictEqual(yield* exported(made.workspace.id), expected)
        yield* load(expected)
        assert.deepStrictEqual(yield* exported(made.workspace.id), expected)
        yield* assertReadsLike(made)
      }),
      { arbitrary: { runs: 15, maxShrinks: 50 } }
    )

    it.effect("exports a workspace's keys and their owners, and nobody else's", () =>
      Effect.gen(function* () {
        const { archive: own } = sample()
        yield* load(sample().archive)
        yield* load({ ...own, users: [...own.users, user()] })
        const api_keys = own.api_keys.filter(({ workspace_id }) => workspace_id !== null)
        assert.deepStrictEqual(yield* exported(own.workspace.id), inOrder({ ...own, api_keys }))
      })
    )

    it.effect("imports a stream of parts as the whole, and nothing of one that fails", () =>
      Effect.gen(function* () {
        const { importArchive } = yield* WorkspaceStore
        const { archive: before } = sample()
        const { archive: other } = sample()
        const after: Archive = { ...other, workspace: before.workspace, users: [], api_keys: [] }
        yield* importArchive(Stream.fromIterable(partsOf(before)))
        yield* assertReadsLike(before)
        const broken = Stream.concat(Stream.fromIterable(partsOf(after)), Stream.fail("broken"))
        assert.strictEqual(yield* Effect.flip(importArchive(broken)), "broken")
        yield* assertReadsLike(before)
        yield* importArchive(Stream.rechunk(Stream.fromIterable(partsOf(after)), 1))
        yield* assertReadsLike(after)
      })
    )

    it.effect("reviseContent applies the edit, or changes nothing in a dry run or after a failure", () =>
      Effect.gen(function* () {
        const { reviseContent, readContent } = yield* WorkspaceStore
        const { archive: own } = sample()
        const home = own.workspace.id
        yield* load(own)
        const before = yield* exported(home)
        assert.deepStrictEqual(yield* readContent(home), contentOf(before))
        const [first] = before.prompts
        const { tags, fragments: _, versions, ...row } = first!
        const added = version(90, { parent_version_id: versions[0]?.id ?? null })
        const edit = {
          ...emptyEdit,
          folders: [folder({ name: "Added" })],
          fragments: [fragment("Added")],
          prompts: [{ row: { ...row, title: "Revised" }, tags: undefined, fragments: [], version: added }]
        } satisfies ContentEdit
        const after = {
          ...before,
          folders: [...before.folders, ...edit.folders].sort(byId),
          fragments: [...before.fragments, ...edit.fragments].sort(byId),
          prompts: before.prompts.map((prompt) =>
            prompt.id === row.id
              ? { ...row, title: "Revised", tags, fragments: [], versions: [...versions, added] }
              : prompt
          )
        }
        const revise = () => Effect.succeed([edit, "revised"] as const)
        assert.strictEqual(yield* reviseContent(home, revise, { dryRun: true }), "revised")
        assert.deepStrictEqual(yield* exported(home), before)
        assert.strictEqual(yield* Effect.flip(reviseContent(home, () => Effect.fail("no"))), "no")
        assert.deepStrictEqual(yield* exported(home), before)
        const taken = sample().archive
        yield* load(taken)
        for (const dryRun of [true, false]) {
          assert.deepStrictEqual(
            yield* Effect.flip(
              reviseContent(
                home,
                () =>
                  Effect.succeed([
                    { ...edit, folders: [...edit.folders, taken.folders[0]!] },
                    undefined
                  ] as const),
                { dryRun }
              )
            ),
            BadArchive([{ path: "folders[1].id", message: "is another workspace's" }])
          )
        }
        assert.deepStrictEqual(yield* exported(home), before)
        assert.strictEqual(yield* reviseContent(home, revise), "revised")
        assert.deepStrictEqual(yield* exported(home), after)
        assert.deepStrictEqual(
          yield* Effect.flip(reviseContent(newId<WorkspaceId>(), revise)),
          WorkspaceNotFound
        )
        assert.deepStrictEqual(yield* Effect.flip(readContent(newId<WorkspaceId>())), WorkspaceNotFound)
      })
    )

    it.effect("reviseContent refuses a prompt, a fragment and a version whose id another workspace has", () =>
      Effect.gen(function* () {
        const { reviseContent } = yield* WorkspaceStore
        const [other, own] = [oneOfEach(), oneOfEach()]
        yield* load(other)
        yield* load(own)
        const [theirs] = other.prompts
        const { tags: _, fragments: __, versions: ___, ...row } = own.prompts[0]!
        const kept = { tags: undefined, fragments: undefined, version: undefined }
        const attempts: ReadonlyArray<readonly [Partial<ContentEdit>, string]> = [
          [{ prompts: [{ ...kept, row: { ...row, id: theirs!.id } }] }, "prompts[0].id"],
          [{ fragments: other.fragments }, "fragments[0].id"],
          [{ prompts: [{ ...kept, row, version: theirs!.versions[0]! }] }, "prompts[0].versions[0].id"],
          [
            { prompts: [{ ...kept, row, fragments: [use(own.fragments[0]!, 1, theirs!.fragments[0])] }] },
            "prompts[0].fragments[0].id"
          ]
        ]
        for (const [over, path] of attempts) {
          const edit = { ...emptyEdit, ...over }
          assert.deepStrictEqual(
            yield* Effect.flip(
              reviseContent(own.workspace.id, () => Effect.succeed([edit, undefined] as const))
            ),
            BadArchive([{ path, message: "is another workspace's" }])
          )
        }
        yield* assertReadsLike(other)
        yield* assertReadsLike(own)
      })
    )

    it.effect.prop(
      "reviseContent makes of any workspace what the edit says",
      { before: archives, other: archives, picks: Arbitrary.array(naturals, { maxLength: 12 }) },
      Effect.fnUntraced(function* ({ before, other, picks }) {
        const { reviseContent, readContent } = yield* WorkspaceStore
        const home = before.workspace.id
        yield* load(before)
        const stored = yield* exported(home)
        const { edit, after } = editOf(stored, other, picks)
        yield* reviseContent(home, () => Effect.succeed([edit, undefined] as const))
        assert.deepStrictEqual(yield* exported(home), inOrder(after))
        assert.deepStrictEqual(yield* readContent(home), contentOf(inOrder(after)))
        yield* assertReadsLike(after)
      }),
      { arbitrary: { runs: 25, maxShrinks: 50 } }
    )

    it.effect("reviseContent loses none of several concurrent revisions", () =>
      Effect.gen(function* () {
        const { reviseContent } = yield* WorkspaceStore
        const home = workspace()
        yield* load(archive({ workspace: home }))
        const add = (name: string) =>
          reviseContent(home.id, ({ folders }) =>
            Effect.succeed([
              {
                ...emptyEdit,
                folders: folders.some((folder) => folder.name === name) ? [] : [folder({ name })]
              },
              name
            ] as const)
          )
        yield* Effect.all(["a", "b", "c", "a", "b", "c"].map(add), { concurrency: "unbounded" })
        assert.deepStrictEqual((yield* exported(home.id)).folders.map(({ name }) => name).sort(), [
          "a",
          "b",
          "c"
        ])
      })
    )

    it.effect("imports and exports rows with the nil UUID, and a revision keeps them", () =>
      Effect.gen(function* () {
        const { reviseContent, importArchive } = yield* WorkspaceStore
        const nil = "00000000-0000-0000-0000-000000000000"
        const home = workspace()
        const owner = user({ id: nil as UserId })
        const own = key(home.id, owner, { id: nil as ApiKeyId })
        const [drawer, label] = [folder({ id: nil as FolderId }), tag("nil", { id: nil as TagId })]
        const snippet = fragment("Snippet", { id: nil })
        const made = archive({
          workspace: home,
          users: [owner],
          api_keys: [own.stored],
          folders: [drawer],
          tags: [label],
          fragments: [snippet],
          prompts: [
            prompt({
              id: nil as PromptId,
              folder_id: drawer.id,
              tags: [label.id],
              fragments: [use(snippet, 1, { id: nil })],
              versions: [version(1, { id: nil as VersionId })]
            })
          ]
        })
        yield* load(made)
        assert.deepStrictEqual(yield* exported(home.id), made)
        yield* load(yield* exported(home.id))
        yield* reviseContent(home.id, (content) => {
          assert.deepStrictEqual(content, contentOf(made))
          return Effect.succeed([{ ...emptyEdit, folders: [folder()] }, undefined] as const)
        })
        const { folders, ...rest } = yield* exported(home.id)
        assert.deepStrictEqual({ ...rest, folders: [folders[0]!] }, made)
        // Frees the ids for other tests of the same database.
        yield* importArchive(archive({ workspace: home }))
      })
    )

    it.effect("exports nothing of a workspace that is not there", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* Effect.flip(exported(newId<WorkspaceId>())), WorkspaceNotFound)
      })
    )

    it.effect("refuses in a dry run what it would refuse, and changes nothing whatever it is", () =>
      Effect.gen(function* () {
        const { importArchive, workspaces } = yield* WorkspaceStore
        const { archive: own, keys } = sample()
        yield* load(own)
        const before = yield* exported(own.workspace.id)
        const emptied = { ...archive({ workspace: own.workspace }), users: [user()] }
        yield* importArchive(emptied, { dryRun: true })
        assert.deepStrictEqual(yield* exported(own.workspace.id), before)
        const taken = archive({ prompts: [prompt({ id: own.prompts[0]!.id })] })
        for (const dryRun of [true, false]) {
          assert.deepStrictEqual(
            yield* Effect.flip(importArchive(taken, { dryRun })),
            BadArchive([{ path: "prompts[0].id", message: "is another workspace's" }])
          )
        }
        yield* importArchive(archive({ workspace: taken.workspace }), { dryRun: true })
        assert.isFalse((yield* workspaces).some(({ id }) => id === taken.workspace.id))
        assert.isFalse((yield* find(keys.active)).revoked)
      })
    )

    it.effect("adds a key for a user that it knows by email, in any case", () =>
      Effect.gen(function* () {
        const home = workspace({ tier: "free" })
        const owner = user({ must_reset_password: true })
        yield* load(archive({ workspace: home, users: [owner] }))
        const made = key(home.id, owner)
        yield* addKey(home.id, owner.email.toUpperCase(), newId(), made)
        assert.deepStrictEqual(yield* find(made), {
          id: made.stored.id,
          revoked: false,
          owner_must_reset: true,
          workspace: { id: home.id, tier: "free", billing_status: "active" }
        })
      })
    )

    it.effect("adds a user for an email that it does not know, once", () =>
      Effect.gen(function* () {
        const home = workspace()
        yield* load(archive({ workspace: home }))
        const owner = user()
        const [first, second] = [key(home.id, owner), key(home.id, owner)]
        yield* addKey(home.id, owner.email, owner.id, first)
        yield* addKey(home.id, owner.email.toUpperCase(), newId(), second)
        const records = Effect.forEach([first, second], find)
        const expected = (owner_must_reset: boolean) =>
          [first, second].map(({ stored }) => ({
            id: stored.id,
            revoked: false,
            owner_must_reset,
            workspace: { id: home.id, tier: home.tier, billing_status: home.billing_status }
          }))
        assert.deepStrictEqual(yield* records, expected(false))
        yield* load(archive({ users: [{ ...owner, must_reset_password: true }] }))
        assert.deepStrictEqual(yield* records, expected(true))
      })
    )

    it.effect("adds nothing, not even the user, where there is no such workspace", () =>
      Effect.gen(function* () {
        const owner = user()
        const nowhere = newId<WorkspaceId>()
        const made = key(nowhere, owner)
        assert.deepStrictEqual(
          yield* Effect.flip(addKey(nowhere, owner.email, owner.id, made)),
          WorkspaceNotFound
        )
        assert.deepStrictEqual(yield* Effect.flip(find(made)), InvalidKey)
        yield* load(archive({ users: [{ ...owner, id: newId<UserId>() }] }))
      })
    )

    it.effect("adds nothing, not even the user, where the key is there already", () =>
      Effect.gen(function* () {
        const { archive: own, keys } = sample()
        yield* load(own)
        const known = yield* find(keys.active)
        const owner = user()
        const attempt = yield* Effect.exit(addKey(own.workspace.id, owner.email, owner.id, keys.active))
        assert.isTrue(Exit.hasDies(attempt))
        assert.deepStrictEqual(yield* find(keys.active), known)
        yield* load(archive({ users: [{ ...owner, id: newId<UserId>() }] }))
      })
    )
  })
