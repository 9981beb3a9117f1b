import { assert, describe, it } from "@effect/vitest"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Administration } from "../../../src/application/administration/Administration.ts"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import {
  type ContentFile,
  type FileChange,
  InvalidFiles,
  type PromptState,
  readItems
} from "../../../src/application/transfer/ContentFile.ts"
import { WorkspaceNotFound } from "../../../src/application/ports/WorkspaceStore.ts"
import type { PromptId } from "../../../src/domain/Prompt.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  archive,
  compareIds,
  folder,
  fragment,
  instant,
  newId,
  prompt,
  sample,
  tag,
  fragmentBinding,
  version,
  versionNumber,
  workspace,
  loadArchive,
  exportArchive
} from "../../support/archives.ts"
import { atTime } from "../../support/clock.ts"
import { workspaceStore } from "../../support/database/workspaceStore.ts"
import { migratedDatabase } from "../../support/postgres.ts"

const layer = Administration.layer.pipe(
  Layer.provide(SecureRandom.layerWebCrypto),
  Layer.provideMerge(workspaceStore),
  Layer.provide(migratedDatabase)
)

const now = instant("2030-01-01T00:00:00.000Z")

const toFiles = (archive: Archive): ReadonlyArray<ContentFile> =>
  [...readItems(archive).values()]
    .filter(({ isArchived }) => !isArchived)
    .map(({ id, state }) => ({ id, path: `${state.kind}s/${id}.md`, file_id: id, state }))

/** Returns the changes without the content before and after each change. */
const summarize = (changes: ReadonlyArray<FileChange>) =>
  changes.map(({ before: _, after: __, ...change }) => change)

const newFile = (overrides: Partial<PromptState> = {}, id: string = newId()) => ({
  path: `prompts/${id}.md`,
  file_id: null,
  id,
  state: {
    kind: "prompt",
    folder: null,
    title: "New",
    description: "",
    current_content: "Body",
    prompt_type: "user",
    target_model: "",
    intent: "",
    is_favorite: false,
    sort_order: 0,
    tags: [],
    fragments: [],
    ...overrides
  } satisfies PromptState
})

/**
 * Imports files at `now`. Returns the workspace before and after the import, and the changes. Checks that a dry run and
 * a second import change nothing.
 */
const importAndRead = Effect.fnUntraced(
  function* (before: Archive, files: (read: Archive) => ReadonlyArray<ContentFile>) {
    const { importFiles } = yield* Administration
    const home = before.workspace.id
    yield* loadArchive(before)
    const read = yield* exportArchive(home)
    const dry = yield* importFiles(home, files(read), { dryRun: true })
    assert.deepStrictEqual(yield* exportArchive(home), read)
    const imported = yield* importFiles(home, files(read))
    // A dry run reports the same changes as the import.
    assert.deepStrictEqual(dry, imported)
    const { changes } = imported
    const after = yield* exportArchive(home)
    assert.deepStrictEqual((yield* importFiles(home, files(read))).changes, [])
    assert.deepStrictEqual(yield* exportArchive(home), after)
    return { read, changes, after }
  },
  atTime(Date.parse(now))
)

const findPrompt = (archive: Archive, id: string) => archive.prompts.find((prompt) => prompt.id === id)!

/** Returns the files of a workspace with the state of one prompt changed. */
const withPrompt = (
  archive: Archive,
  id: string,
  change: (state: PromptState) => PromptState
): ReadonlyArray<ContentFile> =>
  toFiles(archive).map((file) =>
    file.id === id && file.state.kind === "prompt" ? { ...file, state: change(file.state) } : file
  )

describe("importFiles", () => {
  it.live(
    "importFiles stores a changed body as a new version: its number is one more than the highest number, and its parent is the version that was current before the import",
    () =>
      Effect.gen(function* () {
        const { archive: own } = sample()
        const [one, seven] = [version(1), version(7)]
        const greeting = { ...own.prompts[0]!, current_version: 1, versions: [one, seven] }
        const before = { ...own, prompts: [greeting, ...own.prompts.slice(1)] }
        const { read, changes, after } = yield* importAndRead(before, (read) =>
          withPrompt(read, greeting.id, (file) => ({ ...file, current_content: "Changed" }))
        )
        assert.deepStrictEqual(summarize(changes), [
          {
            kind: "prompt",
            id: greeting.id,
            path: `prompts/${greeting.id}.md`,
            name: "Greeting",
            change: "new version"
          }
        ])
        const changed = findPrompt(after, greeting.id)
        assert.deepStrictEqual(changed, {
          ...findPrompt(read, greeting.id),
          current_content: "Changed",
          current_version: 8,
          updated_at: now,
          versions: [
            one,
            seven,
            {
              id: changed.versions[2]!.id,
              version_number: versionNumber(8),
              content: "Changed",
              change_summary: "",
              change_source: "import",
              parent_version_id: one.id,
              metadata: {},
              created_at: now
            }
          ]
        })
        assert.deepStrictEqual(
          after.prompts.filter(({ id }) => id !== greeting.id),
          read.prompts.filter(({ id }) => id !== greeting.id)
        )
      }).pipe(Effect.provide(layer))
  )

  it.live(
    "importFiles adds no new version if only fields other than the content change, and keeps the ids of the bindings of fragments that stay in the prompt",
    () =>
      Effect.gen(function* () {
        const { archive: own } = sample()
        const greeting = own.prompts[0]!
        const { read, changes, after } = yield* importAndRead(own, (read) =>
          withPrompt(read, greeting.id, ({ fragments, ...rest }) => ({
            ...rest,
            title: "Hello",
            description: "Changed",
            prompt_type: "few-shot",
            target_model: "other",
            intent: "other",
            is_favorite: false,
            sort_order: 9,
            folder: "New folder",
            tags: ["new", "production"],
            fragments: fragments.toReversed()
          }))
        )
        assert.deepStrictEqual(
          changes.map(({ change, name }) => [change, name]),
          [["changed", "Hello"]]
        )
        const before = findPrompt(read, greeting.id)
        const added = after.folders.find(({ name }) => name === "New folder")!
        const label = after.tags.find(({ name }) => name === "new")!
        assert.strictEqual(label.color, "#808080")
        const uses = before.fragments.toReversed()
        assert.deepStrictEqual(findPrompt(after, greeting.id), {
          ...before,
          title: "Hello",
          description: "Changed",
          prompt_type: "few-shot",
          target_model: "other",
          intent: "other",
          is_favorite: false,
          sort_order: 9,
          folder_id: added.id,
          updated_at: now,
          tags: [own.tags.find(({ name }) => name === "production")!.id, label.id].sort(),
          fragments: findPrompt(after, greeting.id).fragments
        })
        assert.deepStrictEqual(
          findPrompt(after, greeting.id).fragments.map(({ fragment_id, variable_overrides, position }) => ({
            fragment_id,
            variable_overrides,
            position
          })),
          uses.map(({ fragment_id, variable_overrides }, index) => ({
            fragment_id,
            variable_overrides,
            position: index + 1
          }))
        )
        assert.deepStrictEqual(
          findPrompt(after, greeting.id)
            .fragments.map(({ id }) => id)
            .sort(),
          before.fragments.map(({ id }) => id).sort()
        )
      }).pipe(Effect.provide(layer))
  )

  it.live("importFiles adds new prompts with a first version, and new fragments", () =>
    Effect.gen(function* () {
      const home = workspace()
      const { id, ...stored } = fragment("{{x}}")
      const snippet: ContentFile = {
        id,
        path: "fragments/a.md",
        file_id: null,
        state: { kind: "fragment", ...stored }
      }
      const file = newFile({
        folder: "Folder",
        tags: ["a"],
        fragments: [{ fragment_id: snippet.id, variable_overrides: { x: 1 } }]
      })
      const { after } = yield* importAndRead(archive({ workspace: home }), () => [snippet, file])
      const [added] = after.prompts
      assert.deepStrictEqual(after.fragments, [{ id, ...stored }])
      const { kind: _, folder: __, ...fields } = file.state
      assert.deepStrictEqual(added, {
        ...fields,
        id: file.id as PromptId,
        current_version: 1,
        folder_id: after.folders[0]!.id,
        is_archived: false,
        created_at: now,
        updated_at: now,
        tags: [after.tags[0]!.id],
        fragments: [
          { id: added!.fragments[0]!.id, fragment_id: snippet.id, position: 1, variable_overrides: { x: 1 } }
        ],
        versions: [
          {
            id: added!.versions[0]!.id,
            version_number: versionNumber(1),
            content: "Body",
            change_summary: "",
            change_source: "import",
            parent_version_id: null,
            metadata: {},
            created_at: now
          }
        ]
      })
    }).pipe(Effect.provide(layer))
  )

  it.live(
    "importFiles archives a prompt without a file and restores the prompt when the file exists again",
    () =>
      Effect.gen(function* () {
        const stored = prompt({ title: "Gone", versions: [version(1)] })
        const before = archive({ prompts: [stored] })
        const { after, changes } = yield* importAndRead(before, () => [])
        assert.deepStrictEqual(summarize(changes), [
          { kind: "prompt", id: stored.id, path: null, name: "Gone", change: "archived" }
        ])
        assert.deepStrictEqual(after.prompts, [{ ...stored, is_archived: true, updated_at: now }])
        const again = yield* importAndRead(after, () => toFiles(before))
        assert.deepStrictEqual(again.after.prompts, [{ ...stored, updated_at: now }])
      }).pipe(Effect.provide(layer))
  )

  it.live(
    "importFiles removes a fragment without a file, but keeps a fragment that an archived prompt contains",
    () =>
      Effect.gen(function* () {
        const [unused, used, changed] = [fragment("unused"), fragment("used"), fragment("old")]
        const stored = prompt({ is_archived: true, fragments: [fragmentBinding(used, 1)] })
        const before = archive({ fragments: [unused, used, changed], prompts: [stored] })
        const { after, changes } = yield* importAndRead(before, () => [
          {
            id: changed.id,
            path: "fragments/a.md",
            file_id: changed.id,
            state: { kind: "fragment", name: changed.name, content: "new" }
          }
        ])
        assert.deepStrictEqual(after.fragments, [used, { ...changed, content: "new" }].sort(compareIds))
        assert.deepStrictEqual(after.prompts, [stored])
        assert.deepStrictEqual(
          changes.map(({ change, path }) => [change, path]),
          [
            ["changed", "fragments/a.md"],
            ["removed", null]
          ]
        )
      }).pipe(Effect.provide(layer))
  )

  it.live("importFiles leaves a prompt in its folder even if another folder has the same name", () =>
    Effect.gen(function* () {
      const [first, second] = [folder({ name: "Same" }), folder({ name: "Same" })]
      const before = archive({ folders: [first, second], prompts: [prompt({ folder_id: second.id })] })
      const { changes } = yield* importAndRead(before, toFiles)
      assert.deepStrictEqual(changes, [])
    }).pipe(Effect.provide(layer))
  )

  it.live(
    "importFiles keeps folders and tags that no file mentions, and the users and keys of the workspace",
    () =>
      Effect.gen(function* () {
        const { archive: own } = sample()
        const { read, after } = yield* importAndRead({ ...own, tags: [...own.tags, tag("unused")] }, () => [])
        const { users, api_keys, folders, tags } = after
        assert.deepStrictEqual(
          { users, api_keys, folders, tags },
          { users: read.users, api_keys: read.api_keys, folders: read.folders, tags: read.tags }
        )
      }).pipe(Effect.provide(layer))
  )

  it.live(
    "importFiles rejects a repeated id and an id of another workspace, and names the path of the file",
    () =>
      Effect.gen(function* () {
        const { importFiles } = yield* Administration
        const { archive: theirs } = sample()
        yield* loadArchive(theirs)
        const home = workspace()
        yield* loadArchive(archive({ workspace: home }))
        const [file, other] = [newFile(), newFile()]
        const attempt = (files: ReadonlyArray<ContentFile>) => Effect.flip(importFiles(home.id, files))
        assert.deepStrictEqual(
          yield* attempt([file, { ...other, id: file.id }]),
          InvalidFiles([{ path: other.path, message: `has the id of ${file.path}` }])
        )
        const taken = newFile({}, theirs.prompts[0]!.id)
        assert.deepStrictEqual(
          yield* attempt([other, taken]),
          InvalidFiles([{ path: taken.path, message: "id belongs to another workspace" }])
        )
        assert.deepStrictEqual((yield* exportArchive(home.id)).prompts, [])
        assert.deepStrictEqual(yield* Effect.flip(importFiles(newId<WorkspaceId>(), [])), WorkspaceNotFound)
      }).pipe(Effect.provide(layer))
  )
})
