import { assert, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { decodeArchive } from "../../../src/application/transfer/ArchiveDecoder.ts"
import type { FolderId, TagId } from "../../../src/domain/Prompt.ts"
import {
  archive,
  archives,
  folder,
  fragment,
  fragmentBinding,
  key,
  newId,
  prompt,
  tag,
  user,
  version,
  workspace
} from "../../support/archives.ts"

const toJson = (archive: Archive): unknown => JSON.parse(JSON.stringify(archive))

/** Returns the JSON of an archive with one value replaced, or removed if `value` is undefined. */
const withValue = (archive: Archive, path: string, value: unknown): unknown => {
  const json = toJson(archive)
  const steps = path.split(/[.[\]]+/).filter((step) => step !== "")
  const last = steps.pop()!
  // biome-ignore lint/suspicious/noExplicitAny: the path can lead into any JSON
  const holder = steps.reduce<any>((inner, step) => inner[step], json)
  if (value === undefined) delete holder[last]
  else holder[last] = value
  return json
}

/** Returns the path and the message of each problem, sorted. */
const findProblems = (json: unknown): ReadonlyArray<string> => {
  const result = decodeArchive(json)
  if (Result.isSuccess(result)) return []
  return result.failure.problems.map(({ path, message }) => `${path}: ${message}`).sort()
}

/** Returns an archive with at least one item in every list, so that every field has a path. */
const makeFullArchive = (): Archive => {
  const [home, owner, drawer, label] = [workspace(), user(), folder(), tag("label")]
  const [snippet, first] = [fragment("{{x}}"), version(1)]
  const one = prompt({
    folder_id: drawer.id,
    tags: [label.id],
    fragments: [fragmentBinding(snippet, 1)],
    versions: [first, version(2, { parent_version_id: first.id })]
  })
  return archive({
    workspace: home,
    users: [owner],
    api_keys: [key(home.id, owner).stored],
    folders: [drawer],
    tags: [label],
    fragments: [snippet],
    prompts: [one]
  })
}

it.prop(
  "decodeArchive returns every archive unchanged, whatever the order of its members and the letter case of its ids",
  { archive: archives },
  ({ archive }) => {
    const text = JSON.stringify(Object.fromEntries(Object.entries(archive).reverse()))
    const upper = text.replace(/"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"/g, (id) => id.toUpperCase())
    for (const json of [text, upper])
      assert.deepStrictEqual(decodeArchive(JSON.parse(json)), Result.succeed(archive))
  }
)

it("decodeArchive converts times to UTC with milliseconds", () => {
  const json = withValue(makeFullArchive(), "prompts[0].updated_at", "2026-03-01T01:30+02:00")
  const [read] = Result.getOrThrow(decodeArchive(json)).prompts
  assert.strictEqual(read!.updated_at, "2026-02-28T23:30:00.000Z")
})

const time = "must be an ISO 8601 time with an offset, in the years 0001 to 9999"
const uuid = "must be a UUID"
const nul = "must not contain the NUL character"
const unicode = "must be well-formed Unicode"
const integer = "Expected a value between -2147483648 and 2147483647"

it.each<readonly [string, unknown, string]>([
  ["format", "prompt-retrieval/workspace@2", 'Expected "prompt-retrieval/workspace@1"'],
  ["more", 1, "Expected no excess property"],
  ["workspace.id", "1", uuid],
  ["workspace.tier", "Solo", 'Expected "free" | "solo" | "team"'],
  ["users", {}, "Expected array"],
  ["users[0].email", "", "must not be empty"],
  ["api_keys[0].workspace_id", newId(), "is the id of another workspace"],
  ["api_keys[0].key_hash", "A".repeat(64), "must be 64 lowercase hexadecimal digits"],
  ["api_keys[0].key_start", "abcde", "must be 4 lowercase hexadecimal digits"],
  ["api_keys[0].revoked_at", undefined, "Missing key"],
  ["api_keys[0].expires_at", "2026-01-01", time],
  ["api_keys[0].key", "key_live_secret", "Expected no excess property"],
  ["folders[0].name", "a\0b", nul],
  ["tags[0].name", "\ud800", unicode],
  ["tags[0].color", "#12345", "must be a color like #rrggbb"],
  ["prompts[0].sort_order", 2147483648, integer],
  ["prompts[0].created_at", "2026-02-29T00:00:00Z", time],
  ["prompts[0].updated_at", "0000-12-31T23:59:59.999Z", time],
  ["prompts[0].fragments[0].variable_overrides", { "\ud800": 1 }, unicode],
  [
    "prompts[0].fragments[0].variable_overrides",
    JSON.parse('{"a": [1e999]}'),
    "must hold numbers that JSON can write"
  ],
  ["prompts[0].fragments[0].variable_overrides", null, "Expected object"],
  ["prompts[0].versions[1].version_number", 0, "Expected a value between 1 and 2147483647"]
])("decodeArchive rejects, at %s, the value %j: %s", (path, value, message) => {
  assert.deepStrictEqual(findProblems(withValue(makeFullArchive(), path, value)), [`${path}: ${message}`])
})

it.each<readonly [string, unknown]>([
  ["prompts[0].sort_order", -2147483648],
  ["prompts[0].versions[1].version_number", 2147483647]
])("decodeArchive accepts, at %s, the value %j", (path, value) => {
  const changed = withValue(makeFullArchive(), path, value) as Archive
  assert.deepStrictEqual(decodeArchive(changed), Result.succeed(changed))
})

it.each([null, 7, [archive()]])("decodeArchive rejects %j, which is not a JSON object", (json) => {
  assert.deepStrictEqual(findProblems(json), [": Expected object"])
})

it("decodeArchive reports all malformed values, each with its path, and reports no duplicates if a value is malformed", () => {
  const own = makeFullArchive()
  const problems = findProblems({ ...own, folders: [...own.folders, ...own.folders], tags: [{}] })
  const expected = ["color", "id", "name"].map((field) => `tags[0].${field}: Missing key`)
  assert.deepStrictEqual(problems, expected)
})

it("decodeArchive reports all duplicates and unknown references, each with its path", () => {
  const own = makeFullArchive()
  const [one, owner, stored, label] = [own.prompts[0]!, own.users[0]!, own.api_keys[0]!, own.tags[0]!]
  const [first, second] = one.versions
  const [binding] = one.fragments
  const folder_id: FolderId = newId()
  const json = toJson({
    ...own,
    users: [owner, user({ id: owner.id, email: "other" }), user({ email: owner.email.toUpperCase() })],
    api_keys: [stored, stored, { ...stored, id: newId(), created_by: newId() }],
    folders: [...own.folders, ...own.folders],
    tags: [label, tag("other", { id: label.id }), tag("label"), tag("Label")],
    fragments: [...own.fragments, ...own.fragments],
    prompts: [
      { ...one, tags: [newId<TagId>(), ...one.tags, ...one.tags] },
      prompt({
        id: one.id,
        folder_id,
        fragments: [binding!, { ...binding!, id: newId(), fragment_id: newId() }],
        versions: [
          { ...first!, parent_version_id: first!.id },
          { ...second!, id: newId(), parent_version_id: newId() },
          version(2),
          version(3)
        ]
      })
    ]
  })
  const duplicates = ["api_keys[1].id", "api_keys[2].key_hash", "folders[1].id", "fragments[1].id"]
  const more = ["prompts[0].tags[2]", "prompts[1].id", "prompts[1].versions[2].version_number"]
  const others = ["tags[1].id", "tags[2].name", "users[1].id", "users[2].email"]
  assert.sameMembers(
    [...findProblems(json)],
    [
      ...[...duplicates, ...more, ...others].map((path) => `${path}: is a duplicate`),
      "api_keys[2].created_by: is not in users",
      "prompts[0].tags[0]: is not in tags",
      "prompts[1].folder_id: is not in folders",
      "prompts[1].fragments[1].fragment_id: is not in fragments",
      "prompts[1].versions[0].parent_version_id: is not an earlier version",
      "prompts[1].versions[1].parent_version_id: is not a version of this prompt"
    ]
  )
})

it("decodeArchive reports the first 100 problems and the number of all problems", () => {
  const tags = Array.from({ length: 10_000 }, () => tag("same"))
  const { problems, count } = Result.getOrThrow(Result.flip(decodeArchive(archive({ tags }))))
  assert.deepStrictEqual([problems.length, problems.at(-1)!.path, count], [100, "tags[100].name", 9_999])
})

it("in free-form JSON, decodeArchive keeps names that have a special meaning in JavaScript, such as __proto__", () => {
  const metadata = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2, "toString": null}')
  const read = Result.getOrThrow(
    decodeArchive(withValue(makeFullArchive(), "prompts[0].versions[0].metadata", metadata))
  )
  assert.strictEqual(
    JSON.stringify(read.prompts[0]!.versions[0]!.metadata),
    '{"__proto__":{"a":1},"constructor":2,"toString":null}'
  )
})
