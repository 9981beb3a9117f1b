import { hostname, userInfo } from "node:os"
import { beforeAll, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { makeFailure, runInProcess as run, runJson } from "../../support/services/commandLine.ts"
import { runService, type Service, startService } from "../../support/services/startService.ts"

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const { env, sql, importArchive, acquire } = makeTestDatabase()
let service: Service

beforeAll(async () => {
  service = await acquire(runService(() => startService({ ...env, LOG_LEVEL: "All" })))
})

const json = (...args: ReadonlyArray<string>) => runJson(args, env)
const createWorkspace = (name: string) => json("workspaces", "create", "--name", name, "--tier", "solo")
/** Waits until the service has applied a change and responds with `status` to a key. */
const waitForStatus = (key: string, status: number) => {
  const headers = { authorization: `Bearer ${key}` }
  const readStatus = async () => (await fetch(`${service.url}/api/v1/prompts`, { headers })).status
  return expect.poll(readStatus, { timeout: 5_000 }).toBe(status)
}

const start = Date.now()
/** Expects a time to be this many hours after a command that ran during the tests. */
const expectHoursFromNow = (text: string, hours: number) => {
  expect(text).toMatch(time)
  const moment = Date.parse(text) - hours * 60 * 60 * 1000
  expect(moment).toBeGreaterThanOrEqual(start)
  expect(moment).toBeLessThanOrEqual(Date.now())
}

it("a running service applies a new tier, a new billing status, a password reset or a revocation as soon as a command has set it", async () => {
  const acme = await createWorkspace("Acme")
  const status = { tier: "solo", billing_status: "active" }
  expect(acme).toEqual({ id: expect.stringMatching(uuid), name: "Acme", ...status })
  expect(await json("workspaces", "list")).toContainEqual(acme)
  const issue = ["keys", "issue", "--workspace", acme.id, "--user", "Ada@example.com"]
  const { id, key } = await json(...issue, "--name", "Production")
  const listed = await json("keys", "list", "--workspace", acme.id)
  const shown = `key_live_${key.slice(9, 13)}...${key.slice(-4)}`
  const fields = { id, workspace_id: acme.id, key: shown, name: "Production", owner: "Ada@example.com" }
  const times = { expires_at: null, last_used_at: null, revoked_at: null }
  expect(listed).toEqual([{ ...fields, created_at: expect.stringMatching(time), ...times }])
  expectHoursFromNow(listed[0].created_at, 0)
  await waitForStatus(key, 200)
  const readLastUse = async () => (await json("keys", "list", "--workspace", acme.id))[0].last_used_at
  await expect.poll(readLastUse, { timeout: 10_000 }).toMatch(time)

  expect(await json("workspaces", "set", acme.id, "--tier", "free")).toEqual({ ...acme, tier: "free" })
  await waitForStatus(key, 403)
  await json("workspaces", "set", acme.id, "--tier", "solo", "--billing", "disputed")
  await waitForStatus(key, 402)
  await json("workspaces", "set", acme.id, "--billing", "active")
  await waitForStatus(key, 200)

  const [ada] = await json("users", "list", "--workspace", acme.id)
  const user = { id: expect.stringMatching(uuid), email: "Ada@example.com" }
  expect(ada).toEqual({ ...user, must_reset_password: false })
  const reset = await json("users", "set", "ada@example.com", "--must-reset", "on")
  expect(reset).toEqual({ ...ada, must_reset_password: true })
  await waitForStatus(key, 401)
  await json("users", "set", "ada@example.com", "--must-reset", "off")
  await waitForStatus(key, 200)

  const revoked = await json("keys", "revoke", id.toUpperCase())
  expect(revoked).toMatchObject({ id, key: shown })
  expectHoursFromNow(revoked.revoked_at, 0)
  await waitForStatus(key, 401)
  const { stdout } = await run(["keys", "list", "--workspace", acme.id], env)
  expect(stdout).toMatch(/^ID +KEY +NAME +OWNER +CREATED +EXPIRES +LAST USED +REVOKED\n/)
  expect(stdout).toContain(shown)
})

it("neither the database nor a log line contains a key that a command has issued or rotated", async () => {
  const shop = await createWorkspace("Shop")
  const first = await json("keys", "issue", "--workspace", shop.id, "--user", "eve@example.com")
  const second = await json("keys", "rotate", first.id)
  for (const { key } of [first, second]) await waitForStatus(key, 200)
  const tables = (await sql(
    "select relname::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
  )) as ReadonlyArray<{ readonly name: string }>
  const stored = [service.output()]
  for (const { name } of tables)
    stored.push(JSON.stringify(await sql(`select t::text as row from ${name} t`)))
  expect(stored.join("\n")).toContain(second.id)
  // The text of a bytea column is the hexadecimal form of its bytes.
  for (const { key } of [first, second])
    for (const digits of [key.slice(9, -4), key.slice(13)])
      for (const text of [digits, Buffer.from(digits).toString("hex")])
        expect(stored.join("\n")).not.toContain(text)
})

it("keys issue and keys rotate set and print the expiry of a key, and say that the key is shown only once", async () => {
  const { id } = await createWorkspace("Expiring")
  const issue = ["keys", "issue", "--workspace", id, "--user", "eve@example.com", "--name", "Production"]
  const first = await json(...issue, "--expires", "90d")
  expectHoursFromNow(first.expires_at, 90 * 24)
  const rotate = ["keys", "rotate", "Production", "--workspace", id]
  const second = await json(...rotate, "--expires", "2098-01-31T12:00+01:00")
  expect(second).toMatchObject({
    expires_at: "2098-01-31T11:00:00.000Z",
    replaced: { id: first.id, name: "Production (replaced)", revoked_at: null }
  })
  expectHoursFromNow(second.replaced.expires_at, 24)
  expectHoursFromNow((await json(...rotate, "--ends", "12h")).replaced.expires_at, 12)
  const { stdout, stderr } = await run([...rotate, "--expires", "2099-01-01", "--ends", "now"], env)
  expect(stdout).toMatch(/^key_live_[0-9a-f]{64}\n$/)
  expect(stderr).toMatch(/^This key is shown only once.*\nIt expires at 2099-01-01T00:00:00.000Z\.\n/)
  expect(stderr).toMatch(/\nThe replaced key key_live_\w{4}\.\.\.\w{4} was revoked at /)
})

it("workspaces rename, workspaces delete and users delete make their changes, and `audit list` shows the actor of each change", async () => {
  const { archive: original } = sample()
  const [owner, shop] = [original.users[0]!, original.workspace]
  await importArchive(original)

  expect(await run(["users", "delete", owner.email], env)).toEqual(
    makeFailure(`"${owner.email}" owns 3 active keys; revoke them first, or add --yes to delete them too`)
  )
  const deleted = await json("users", "delete", owner.email.toUpperCase(), "--yes")
  expect(deleted).toEqual({ ...owner, api_keys: 5 })
  expect(await run(["users", "set", owner.email, "--must-reset", "on"], env)).toEqual(
    makeFailure(`there is no user "${owner.email}"; see 'prompt-retrieval users list'`)
  )
  const renamed = { ...shop, name: "Store" }
  expect(await json("workspaces", "rename", shop.id, "Store")).toEqual(renamed)
  const counts = { prompts: original.prompts.length, api_keys: 2 }
  expect(await json("workspaces", "delete", shop.id, "--yes")).toEqual({ ...renamed, ...counts })
  expect(await json("workspaces", "list")).not.toContainEqual(expect.objectContaining({ id: shop.id }))

  expect(await json("audit", "list", "--limit", "1", "--workspace", shop.id)).toMatchObject([
    { action: "workspace.deleted", subject: "Store", actor: `${userInfo().username}@${hostname()}` }
  ])
  const named = { ...env, PROMPT_RETRIEVAL_ACTOR: "pipeline 7" }
  const created = await run(["workspaces", "create", "--name", "Named"], named)
  expect(created).toEqual({ code: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/), stderr: "" })
  const log = await run(["audit", "list"], env)
  expect(log.stdout).toMatch(/^TIME +ACTOR +ACTION +WORKSPACE +SUBJECT +DETAILS\n/)
  expect(log.stdout).toMatch(/Z +pipeline 7 +workspace\.created +\S+ +Named +tier="free"\n/)
})
