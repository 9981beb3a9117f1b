import { expect, it } from "vitest"
import { archive, instant, key, user, workspace } from "../../support/archives.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { makeFailure, runInProcess as run, runJson } from "../../support/services/commandLine.ts"

const acme = workspace({ name: "Acme Inc.", tier: "solo" })
const twins = [workspace({ name: "Twin" }), workspace({ name: "Twin" })]
const { env, importArchive } = makeTestDatabase([acme, ...twins].map((workspace) => archive({ workspace })))

const withDefault = (name: string) => ({ ...env, PROMPT_RETRIEVAL_WORKSPACE: name })

it("a command takes the id or the name of a workspace, and uses PROMPT_RETRIEVAL_WORKSPACE by default if the variable is not empty", async () => {
  const byId = await run(["export", "--workspace", acme.id.toUpperCase()], withDefault("Twin"))
  expect(byId).toMatchObject({ code: 0, stderr: "" })
  expect(JSON.parse(byId.stdout).workspace.id).toBe(acme.id)
  expect(await run(["export", "--workspace", "Acme Inc."], env)).toEqual(byId)
  expect(await run(["export"], withDefault("Acme Inc."))).toEqual(byId)
  expect(await run(["export"], withDefault(""))).toMatchObject({ code: 2 })
  const set = ["workspaces", "set", "Acme Inc.", "--billing", "active"]
  expect(await runJson(set, env)).toMatchObject({ id: acme.id })
})

it("import of a directory uses PROMPT_RETRIEVAL_WORKSPACE, but import of an archive ignores the variable", async () => {
  const files = await runJson(["import", "examples/prompts-as-files"], withDefault("Acme Inc."))
  expect(files).toMatchObject({ workspace_id: acme.id })
  const twin = JSON.stringify(archive({ workspace: twins[0]! }))
  const imported = await runJson(["import", "-"], withDefault("Acme Inc."), twin)
  expect(imported).toMatchObject({ workspace_id: twins[0]!.id })
  const wrong = { code: 2, stderr: expect.stringContaining("an archive names its own workspace") }
  expect(await run(["import", "-", "--workspace", "Acme Inc."], env, twin)).toMatchObject(wrong)
})

it("workspaces create and workspaces rename warn if another workspace has the same name", async () => {
  const warning = expect.stringContaining(`workspace ${acme.id} has the name Acme Inc., too`)
  const created = await run(["workspaces", "create", "--name", "Acme Inc."], env)
  const id = created.stdout.trim()
  expect(created).toEqual({ code: 0, stdout: `${id}\n`, stderr: warning })
  expect(await run(["workspaces", "rename", id, "Other"], env)).toMatchObject({ code: 0, stderr: "" })
  const renamed = await run(["workspaces", "rename", id, "Acme Inc.", "--json"], env)
  expect(renamed).toMatchObject({ code: 0 })
  expect(JSON.parse(renamed.stderr)).toEqual({ warning: { message: warning } })
  await run(["workspaces", "delete", id, "--yes"], env)
})

it("keys revoke and keys rotate find a key by its name among the valid keys of the workspace", async () => {
  const [home, owner] = [workspace({ name: "Home" }), user()]
  const expired = key(home.id, owner, { name: "CI", expires_at: instant("2026-01-02T00:00:00.000Z") })
  const [one, other] = [key(home.id, owner, { name: "CI" }), key(home.id, owner, { name: "CI" })]
  const api_keys = [expired, one, other].map(({ stored }) => stored)
  await importArchive(archive({ workspace: home, users: [owner], api_keys }))
  const revoke = ["keys", "revoke", "CI", "--workspace", "Home"]
  const ids = [one.stored.id, other.stored.id].sort()
  expect(await run(revoke, env)).toEqual(
    makeFailure(`2 keys have the name "CI": use one of the ids ${ids.join(", ")}`)
  )
  expect(await run(["keys", "revoke", one.stored.id], env)).toMatchObject({ code: 0 })
  const rotate = ["keys", "rotate", "CI", "--ends", "now"]
  const { id, replaced } = await runJson(rotate, withDefault("Home"))
  expect(replaced).toMatchObject({ id: other.stored.id })
  expect(await runJson(revoke, env)).toMatchObject({ id, name: "CI" })
  expect(await run(revoke, env)).toEqual(
    makeFailure(`there is no key "CI"; see 'prompt-retrieval keys list'`)
  )
})

const ids = twins.map(({ id }) => id).sort()
const notFound = (name: string) => `there is no workspace "${name}"; see 'prompt-retrieval workspaces list'`
const zero = "00000000-0000-0000-0000-000000000000"
it.each([
  ["Twin", `2 workspaces have the name "Twin": use one of the ids ${ids.join(", ")}`],
  ["acme inc.", notFound("acme inc.")],
  [zero, notFound(zero)]
])("a command fails unless exactly one workspace has the given name or id: %s", async (name, message) => {
  expect(await run(["users", "list", "--workspace", name], env)).toEqual(makeFailure(message))
})
