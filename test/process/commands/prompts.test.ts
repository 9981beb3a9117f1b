import { expect, it } from "vitest"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import demo from "../../../src/demo/workspace.json" with { type: "json" }
import {
  archive,
  fragment,
  fragmentBinding,
  instant,
  prompt,
  version,
  workspace
} from "../../support/archives.ts"
import { lockTables } from "../../support/database/locks.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { makeFailure, runInProcess as run, runJson } from "../../support/services/commandLine.ts"

const agent = demo.prompts[0]!

// The Free tier has no API access and sees only recent versions, but the commands must show all versions.
const free = { ...demo, workspace: { ...demo.workspace, tier: "free" } } as unknown as Archive
const database = makeTestDatabase([free])
const env = { ...database.env, PROMPT_RETRIEVAL_WORKSPACE: "Demo" }

const print = async (...args: ReadonlyArray<string>): Promise<string> => {
  const result = await run(["prompts", ...args], env)
  expect(result).toMatchObject({ code: 0, stderr: "" })
  return result.stdout
}
const json = (...args: ReadonlyArray<string>) => runJson(["prompts", ...args], env)

it("prompts list shows the prompts that are not archived, filtered by folder, tag and type", async () => {
  const [[folder], [tag]] = [demo.folders, demo.tags]
  for (const [flags, matching] of [
    [[], demo.prompts],
    [["--folder", folder!.id], demo.prompts.filter(({ folder_id }) => folder_id === folder!.id)],
    [["--tag", tag!.name], demo.prompts.filter(({ tags }) => tags.includes(tag!.id))],
    [["--type", "user"], demo.prompts.filter(({ prompt_type }) => prompt_type === "user")]
  ] as const) {
    const expected = matching
      .filter(({ is_archived }) => !is_archived)
      .sort((a, b) => (a.updated_at < b.updated_at ? 1 : -1))
    const listed: ReadonlyArray<{ readonly id: string }> = await json("list", ...flags)
    expect(listed.map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
  }
  const table = await print("list")
  expect(table).toMatch(/^ID +TITLE +TYPE +MODEL +VERSION +UPDATED\n/)
  expect(table).toMatch(new RegExp(`^${agent.id}  ${agent.title} `, "m"))
})

it("prompts list shows every prompt of a workspace with more prompts than a page of the API contains", async () => {
  const large = archive({
    workspace: workspace({ name: "Large" }),
    prompts: Array.from({ length: 205 }, () => prompt())
  })
  await database.importArchive(large)
  expect(await json("list", "--workspace", "Large")).toHaveLength(large.prompts.length)
})

it("if its statement times out, prompts list exits with 1 and prints that the database did not respond in time", async () => {
  const unlock = await lockTables(env.DATABASE_URL, "prompts")
  const result = await run(["prompts", "list"], env).finally(unlock)
  expect(result).toEqual(makeFailure("the database cannot be reached or did not respond in time"))
})

it("prompts get shows the prompt's fields and content", async () => {
  const shown = await print("get", "Support agent")
  expect(shown).toMatch(/^title +Support agent\n(.*\n)*current_version +3\n(.*\n)*tags +production\n/m)
  expect(shown.endsWith(`\n\n${agent.current_content}\n`)).toBe(true)
  const { id, current_content } = agent
  expect(await json("get", id)).toMatchObject({ id, current_content, tags: [demo.tags[0]] })
})

it.each([
  ["folders", demo.folders],
  ["tags", demo.tags]
])("%s list shows ids and names, sorted by name", async (list, items) => {
  expect(await runJson([list, "list"], env)).toEqual([...items].sort((a, b) => (a.name < b.name ? -1 : 1)))
  const table = await run([list, "list"], env)
  for (const { id, name } of items) expect(table.stdout).toMatch(new RegExp(`^${id}  ${name}`, "m"))
})

it("prompts resolve prints only the resolved content", async () => {
  const { resolved_content, fragment_count } = await json("resolve", "Support agent")
  expect(fragment_count).toBe(3)
  expect(resolved_content).toContain("Write as Acme does: warm and calm")
  expect(await print("resolve", agent.id)).toBe(`${resolved_content}\n`)
})

it("prompts resolve prints only the error if the resolved content is larger than 1 MiB", async () => {
  const [suffix, home] = [fragment("x"), workspace({ name: "Too large" })]
  const fragments = [fragmentBinding(suffix, 1)]
  const large = prompt({ title: "Large", current_content: "x".repeat(2 ** 20), fragments })
  await database.importArchive(archive({ workspace: home, fragments: [suffix], prompts: [large] }))
  const result = await run(["prompts", "resolve", large.id, "--workspace", home.name], env, "")
  const message = `the resolved content of prompt ${large.id} is larger than 1 MiB; shorten the prompt or its fragments`
  expect(result).toEqual(makeFailure(message))
})

it("prompts diff compares two versions, or a version and the current content, line by line, even in a workspace of the Free tier", async () => {
  expect(await print("diff", "Support agent", "--from", "1", "--to", "2")).toBe(`--- version 1
+++ version 2
@@ -1 +1 @@
-You are a support agent.
\\ No newline at end of file
+You are a support agent of {{shop}}. Be brief and friendly.
\\ No newline at end of file
`)
  expect(await json("diff", agent.id, "--from", "1")).toEqual({
    id: agent.id,
    from: 1,
    to: null,
    diff: expect.stringContaining("+++ current content\n")
  })
  expect(await json("diff", agent.id, "--from", "3")).toMatchObject({ diff: "" })
  expect(await print("diff", agent.id, "--from", "3")).toBe("Version 3 equals the current content\n")
})

it("prompts diff without versions shows the latest change to the content", async () => {
  expect(await json("diff", "support-agent")).toEqual({
    ...(await json("diff", "support-agent", "--from", "2")),
    diff: expect.stringMatching(/^--- version 2\n\+\+\+ current content\n@@ /)
  })
  const toVersions = (...contents: ReadonlyArray<string>) =>
    contents.map((content, index) => version(index + 1, { content }))
  const prompts = [
    prompt({ title: "Edited", current_content: "c", versions: toVersions("a", "b") }),
    prompt({ title: "Single", current_content: "a", versions: toVersions("a") })
  ]
  await database.importArchive(archive({ workspace: workspace({ name: "Diffs" }), prompts }))
  expect(await json("diff", "edited", "--workspace", "Diffs")).toMatchObject({ from: 2, to: null })
  expect(await print("diff", "single", "--workspace", "Diffs")).toBe("Version 1 equals the current content\n")
})

it("prompts get finds a prompt by its exact title only if the slug of this title is the name of the prompt", async () => {
  const [original, copy] = [
    prompt({ title: "Twin", created_at: instant("2026-01-01") }),
    prompt({ title: "twin!", created_at: instant("2026-01-02") })
  ]
  const doubled = archive({ workspace: workspace({ name: "Doubled" }), prompts: [copy, original] })
  await database.importArchive(doubled)
  expect(await json("get", "Twin", "--workspace", "Doubled")).toMatchObject({ id: original.id })
  for (const title of ["twin!", "TWIN"])
    expect(await run(["prompts", "get", title, "--workspace", "Doubled"], env)).toEqual(
      makeFailure(`the prompt twin has the title "Twin"; for the ids, see 'prompt-retrieval prompts list'`)
    )
})

it.each([
  [["resolve", "Nobody"], `workspace "Demo" has no prompt "Nobody"; see 'prompt-retrieval prompts list'`],
  [["diff", agent.id, "--from", "1", "--to", "9"], `prompt ${agent.id} has no version 9`]
])("prompts %j exits with 1 if the prompt or the version does not exist", async (args, message) => {
  expect(await run(["prompts", ...args], env)).toEqual(makeFailure(message))
})
