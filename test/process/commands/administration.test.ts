import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { hostname, tmpdir, userInfo } from "node:os"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Archive } from "../../../src/application/formats/Archive.ts"
import { archive, instant, prompt, sample, version, workspace } from "../../support/archives.ts"
import { connectTo, makeResources, postgres } from "../../support/database.ts"
import { expectFailure, runInProcess as run } from "../../support/services/commandLine.ts"
import { currentProgram, type Service, startService } from "../../support/service.ts"

const scratch = mkdtempSync(join(tmpdir(), "commands-"))
afterAll(() => rmSync(scratch, { recursive: true }))

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe("commands while a service runs", { timeout: 120_000 }, () => {
  const resources = makeResources()
  let env: Record<string, string>
  let service: Service
  const outputs: Array<string> = []

  beforeAll(async () => {
    env = await resources.acquire(postgres.acquire)
    service = await startService({ ...env, LOG_LEVEL: "All" })
  })
  afterAll(async () => {
    if (service !== undefined) await service.stop()
    await resources.release()
  })

  /** Runs a command that must succeed and print only JSON. Returns the parsed JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: the value depends on the command
  const json = async (...args: ReadonlyArray<string>): Promise<any> => {
    const result = await run([...args, "--json"], env)
    outputs.push(result.stderr)
    expect(result).toMatchObject({ code: 0, stderr: "" })
    return JSON.parse(result.stdout)
  }
  const importText = async (original: Archive, ...args: ReadonlyArray<string>) => {
    const result = await run(["import", "-", "--json", ...args], env, JSON.stringify(original))
    expect(result).toMatchObject({ code: 0, stderr: "" })
    return JSON.parse(result.stdout)
  }
  const get = async (path: string, key: string) => {
    const response = await fetch(`${service.url}${path}`, { headers: { authorization: `Bearer ${key}` } })
    // biome-ignore lint/suspicious/noExplicitAny: the value depends on the endpoint
    const body = (await response.json()) as any
    return {
      status: response.status,
      code: body.error?.code,
      message: body.error?.message,
      data: body.data
    }
  }
  /** Waits until the service has applied a change, so that it responds with `status`. */
  const waitForStatus = (path: string, key: string, status: number) =>
    expect.poll(async () => (await get(path, key)).status, { timeout: 5_000 }).toBe(status)

  it("the service applies the tiers, billing statuses, password resets and revocations that commands set, and no plaintext key is stored", async () => {
    const acme = await json("workspaces", "create", "--name", "Acme")
    expect(acme).toEqual({
      id: expect.stringMatching(uuid),
      name: "Acme",
      tier: "free",
      billing_status: "active"
    })
    expect(await json("workspaces", "list")).toContainEqual(acme)
    const old = version(1, { created_at: instant("2020-01-01T00:00:00.000Z") })
    const one = prompt({ versions: [old] })
    await importText(archive({ workspace: { ...acme, tier: "team" }, prompts: [one] }))

    const issue = ["keys", "issue", "--workspace", acme.id, "--user", "Ada@example.com"]
    // The Free tier has no API access, so the command prints a warning on stderr.
    const production = await run([...issue, "--name", "Production", "--json"], env)
    const { id, key } = JSON.parse(production.stdout)
    const issued = await run(issue, env)
    for (const { code, stderr } of [production, issued]) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("has no API access") })
      outputs.push(stderr)
    }
    expect(issued.stdout).toMatch(/^key_live_[0-9a-f]{64}\n$/)
    expect(issued.stderr).toContain("This key is shown only once: store it where ")
    const summary = `key_live_${key.slice(9, 13)}...${key.slice(-4)}`
    const expectedListing = {
      id,
      workspace_id: acme.id,
      key: summary,
      name: "Production",
      owner: "Ada@example.com",
      created_at: expect.stringMatching(time),
      expires_at: null,
      last_used_at: null,
      revoked_at: null
    }
    expect((await json("keys", "list", "--workspace", acme.id))[0]).toEqual(expectedListing)

    const versions = `/api/v1/prompts/${one.id}/versions`
    for (const path of ["/api/v1/prompts", versions, `${versions}/1`]) {
      expect(await get(path, key)).toMatchObject({ status: 403, code: "API_NOT_ALLOWED" })
    }
    expect(await json("workspaces", "set", acme.id, "--tier", "solo")).toEqual({ ...acme, tier: "solo" })
    await waitForStatus(versions, key, 200)
    expect((await get(versions, key)).data).toHaveLength(1)
    expect((await get(`${versions}/1`, key)).data.content).toBe(old.content)
    await expect
      .poll(async () => (await json("keys", "list", "--workspace", acme.id))[0].last_used_at, {
        timeout: 10_000
      })
      .toMatch(time)

    await json("workspaces", "set", acme.id, "--billing", "disputed")
    await waitForStatus(versions, key, 402)
    await json("workspaces", "set", acme.id, "--billing", "active")
    await waitForStatus(versions, key, 200)

    const users = await json("users", "list", "--workspace", acme.id)
    expect(users).toEqual([
      { id: expect.stringMatching(uuid), email: "Ada@example.com", must_reset_password: false }
    ])
    expect(await json("users", "set", "ada@example.com", "--must-reset", "on")).toEqual({
      ...users[0],
      must_reset_password: true
    })
    await waitForStatus(versions, key, 401)
    expect((await get(versions, key)).message).toBe("API key owner must reset password")
    await json("users", "set", "ada@example.com", "--must-reset", "off")
    await waitForStatus(versions, key, 200)

    const revoked = await json("keys", "revoke", id.toUpperCase())
    expect(revoked).toMatchObject({ id, key: summary, revoked_at: expect.stringMatching(time) })
    await waitForStatus(versions, key, 401)
    expect((await get(versions, key)).message).toBe("API key has been revoked")
    expect(await json("keys", "revoke", id)).toEqual(revoked)
    const table = await run(["keys", "list", "--workspace", acme.id], env)
    expect(table.stdout.split("\n")[0]).toMatch(
      /^ID +KEY +NAME +OWNER +CREATED +EXPIRES +LAST USED +REVOKED$/
    )
    expect(table.stdout).toContain(summary)

    // Neither key may occur in the database, the log or the output of commands.
    const database = await resources.acquire(connectTo(env))
    const columns = (await database.sql(`select table_name, column_name, data_type
      from information_schema.columns where table_schema = 'public'`)) as ReadonlyArray<{
      table_name: string
      column_name: string
      data_type: string
    }>
    expect(columns.length).toBeGreaterThan(40)
    const dumped: Array<string> = [service.output(), ...outputs]
    for (const { table_name, column_name, data_type } of columns) {
      const value = data_type === "bytea" ? `encode(${column_name}, 'escape')` : `${column_name}::text`
      dumped.push(JSON.stringify(await database.sql(`select ${value} as value from ${table_name}`)))
      if (data_type === "bytea") {
        const hex = `select encode(${column_name}, 'hex') as value from ${table_name}`
        dumped.push(JSON.stringify(await database.sql(hex)))
      }
    }
    const stored = dumped.join("\n")
    expect(stored).toContain(id)
    for (const plaintext of [key, issued.stdout.slice(0, 73)]) {
      expect(plaintext).toHaveLength(73)
      expect(stored).not.toContain(plaintext.slice(9, -4))
      expect(stored).not.toContain(plaintext.slice(13))
    }
  })

  it("keys issue and keys rotate set when keys end, and keys list shows whether a replaced key is still in use", async () => {
    const hour = 60 * 60 * 1000
    /** Expects a time to be this many hours from now, with a tolerance of a minute. */
    const expectHoursFromNow = (text: string, hours: number) => {
      expect(text).toMatch(time)
      expect(Math.abs(Date.parse(text) - Date.now() - hours * hour)).toBeLessThan(60_000)
    }
    const [email, path] = [`${randomUUID()}@example.com`, "/api/v1/prompts"]
    const shop = await json("workspaces", "create", "--name", "Shop", "--tier", "solo")
    const issue = ["keys", "issue", "--workspace", shop.id, "--user", email]
    const first = await json(...issue, "--name", "Production", "--expires", "90d")
    expect(first).toEqual({
      id: expect.stringMatching(uuid),
      key: expect.anything(),
      expires_at: first.expires_at
    })
    expectHoursFromNow(first.expires_at, 90 * 24)
    const dated = await run([...issue, "--expires", "2099-01-01"], env)
    expect(dated).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^key_live_[0-9a-f]{64}\n$/),
      stderr: expect.stringContaining("expires at 2099-01-01T00:00:00.000Z.")
    })

    const second = await json("keys", "rotate", first.id, "--expires", "2098-01-31T12:00+01:00")
    expect(second).toMatchObject({
      expires_at: "2098-01-31T11:00:00.000Z",
      replaced: { id: first.id, revoked_at: null }
    })
    expectHoursFromNow(second.replaced.expires_at, 24)
    const third = await json("keys", "rotate", second.id, "--ends", "12h")
    expect(third.expires_at).toBeNull()
    expectHoursFromNow(third.replaced.expires_at, 12)
    for (const { key } of [first, second, third]) expect((await get(path, key)).status).toBe(200)
    // keys list must show that the replaced key is still in use.
    const readUse = async () => {
      const listed = await json("keys", "list", "--workspace", shop.id)
      return listed.find(({ id }: { id: string }) => id === first.id).last_used_at
    }
    await expect.poll(readUse, { timeout: 10_000 }).toMatch(time)
    const fourth = await run(["keys", "rotate", third.id, "--ends", "now"], env)
    expect(fourth.stdout).toMatch(/^key_live_[0-9a-f]{64}\n$/)
    expect(fourth.stderr).toMatch(
      /^This key is shown only once(.*\n)+The replaced key key_live_\w{4}\.\.\.\w{4} was revoked at /
    )
    await waitForStatus(path, third.key, 401)
    const table = await run(["keys", "list", "--workspace", shop.id], env)
    expect(table.stdout).toContain(second.replaced.expires_at)

    const events = await json("audit", "list", "--workspace", shop.id)
    expect(
      events.toReversed().map(({ action, subject }: Record<string, string>) => `${action} ${subject}`)
    ).toEqual([
      "workspace.created Shop",
      `key.issued ${first.id}`,
      expect.stringMatching(/^key\.issued /),
      `key.rotated ${first.id}`,
      `key.rotated ${second.id}`,
      `key.rotated ${third.id}`
    ])
    for (const { key } of [first, second, third])
      expect(JSON.stringify(events)).not.toContain(key.slice(9, 25))
  })

  it("commands rename and delete workspaces and delete users, and audit list names the actor of each change", async () => {
    const { archive: original, keys } = sample()
    const [{ email }, shop] = [original.users[0]!, original.workspace]
    const own = keys.active
    await importText(original)
    await waitForStatus("/api/v1/prompts", own.plaintext, 200)

    const rejected = await run(["users", "delete", email], env)
    expectFailure(["users delete"], rejected, 1, /owns 3 active keys; revoke them first, or add --yes/)
    const deleted = await json("users", "delete", email.toUpperCase(), "--yes")
    expect(deleted).toEqual({ ...original.users[0], api_keys: 5 })
    await waitForStatus("/api/v1/prompts", own.plaintext, 401)
    expect((await get("/api/v1/prompts", own.plaintext)).message).toBe("Invalid API key")

    const renamed = { ...shop, name: "Store" }
    expect(await json("workspaces", "rename", shop.id, "Store")).toEqual(renamed)
    const unconfirmed = await run(["workspaces", "delete", shop.id], env)
    expectFailure(["workspaces delete"], unconfirmed, 2, /add --yes/)
    expect(await json("workspaces", "delete", shop.id, "--yes")).toEqual({
      ...renamed,
      prompts: original.prompts.length,
      api_keys: 2
    })
    expect((await json("workspaces", "list")).map(({ id }: { id: string }) => id)).not.toContain(shop.id)

    const events = await json("audit", "list", "--workspace", shop.id)
    expect(
      events.map(({ action, subject }: Record<string, string>) => `${action} ${subject}`).toReversed()
    ).toEqual([
      "workspace.imported standard input",
      ...Array.from({ length: 3 }, () => expect.stringMatching(/^key\.deleted /)),
      "workspace.renamed Store",
      "workspace.deleted Store"
    ])
    const actor = `${userInfo().username}@${hostname()}`
    expect(new Set(events.map(({ actor }: { actor: string }) => actor))).toEqual(new Set([actor]))
    expect(await json("audit", "list", "--limit", "1", "--workspace", shop.id)).toEqual([events[0]])
    await run(["workspaces", "create", "--name", "Named"], {
      ...env,
      PROMPT_RETRIEVAL_ACTOR: "pipeline 7"
    })
    const created = await run(["workspaces", "create", "--name", "Printed"], env)
    expect(created).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/),
      stderr: ""
    })
    const log = await run(["audit", "list"], env)
    expect(log.stdout).toMatch(/^TIME +ACTOR +ACTION +WORKSPACE +SUBJECT +DETAILS\n/)
    expect(log.stdout).toMatch(/Z +pipeline 7 +workspace\.created +\S+ +Named +tier="free"\n/)
  })

  it("import and export --update keep a directory consistent with two workspaces, even if prompts are edited in one of them", async () => {
    const [staging, production] = [workspace(), workspace()]
    for (const home of [staging, production]) await importText(archive({ workspace: home }))
    const directory = join(scratch, `git-${staging.id}`)
    const write = (path: string, text: string) => {
      mkdirSync(join(directory, dirname(path)), { recursive: true })
      writeFileSync(join(directory, path), text)
    }
    const plain = "Greet {{customer}}.\n"
    const agent =
      "---\n# The shop team owns this prompt.\nid: 6F1F0C2E-6F6E-4A57-9D9E-0B6F2F1B7A51\ntags: [draft]\nfragments:\n- fragment: tone\n  with: {tone: kind}\n---\nAnswer.\n"
    write("prompts/Support/greeting.md", plain)
    write("prompts/agent.md", agent)
    write("fragments/tone.md", "Write in a {{tone}} tone.\n")
    const load = (home: { id: string }, ...more: ReadonlyArray<string>) =>
      run(["import", directory, "--workspace", home.id, ...more], env)
    const update = (home: { id: string }) =>
      json("export", "--workspace", home.id, "--format", "files", "--update", "--out", directory)
    const exported = async (home: { id: string }): Promise<Archive> =>
      JSON.parse((await run(["export", "--workspace", home.id], env)).stdout)

    for (const home of [staging, production, staging]) {
      expect(await load(home)).toMatchObject({ code: 0, stderr: "" })
      expect(await update(home)).toMatchObject({ written: [], removed: [], pending: [] })
    }
    expect((await load(staging, "--detailed-exitcode")).code).toBe(0)
    const [first, second] = [await exported(staging), await exported(production)]
    expect(second.prompts.map(({ title }) => title)).toEqual(
      expect.arrayContaining(first.prompts.map(({ title }) => title))
    )
    const ids = [...first.prompts, ...second.prompts].map(({ id }) => id)
    expect(new Set(ids).size).toBe(4)

    // Edits the prompt in the staging workspace, and changes its file in a different way.
    const edited = first.prompts.map((prompt) =>
      prompt.current_content === "Answer." ? { ...prompt, current_content: "Answer briefly." } : prompt
    )
    await importText({ ...first, prompts: edited })
    write("prompts/agent.md", agent.replace("[draft]", "[draft, new]"))
    const rejected = {
      code: 1,
      stdout: "",
      stderr: [
        "prompt-retrieval: nothing was imported; the import would undo what was changed in the workspace since the latest import:",
        "prompts/agent.md: was edited",
        "Bring the changes into the files with export --format files --update, or undo them with --overwrite.",
        ""
      ].join("\n")
    }
    expect(await load(staging)).toEqual(rejected)
    expect(await load(staging, "--dry-run", "--detailed-exitcode")).toEqual(rejected)
    const preview = await load(staging, "--dry-run", "--overwrite", "--detailed-exitcode")
    expect(preview).toMatchObject({ code: 2, stderr: "" })
    expect(preview.stdout).toContain("new version: prompt prompts/agent.md (agent)\n@@ ")
    expect(preview.stdout).toContain("\n   - draft\n+  - new\n")
    expect(preview.stdout).toContain("\n-Answer briefly.\n+Answer.\n")

    write("prompts/agent.md", agent)
    expect(await update(staging)).toMatchObject({
      written: ["prompts/agent.md"],
      removed: [],
      pending: []
    })
    expect(readFileSync(join(directory, "prompts/agent.md"), "utf8")).toBe(
      agent.replace("Answer.", "Answer briefly.")
    )
    expect(readFileSync(join(directory, "prompts/Support/greeting.md"), "utf8")).toBe(plain)
    // The files now contain the edit, so the next import may replace the edited content.
    write("prompts/agent.md", agent.replace("Answer.", "Answer very briefly."))
    for (const home of [staging, production]) {
      expect(await load(home, "--detailed-exitcode")).toMatchObject({ code: 2, stderr: "" })
    }

    // Changes both the file and the prompt after the latest import.
    const diverged = await exported(production)
    await importText({
      ...diverged,
      prompts: diverged.prompts.map((prompt) => ({ ...prompt, current_content: "Edited." }))
    })
    const updateArgs = [
      "export",
      "--workspace",
      production.id,
      "--format",
      "files",
      "--update",
      "--out",
      directory
    ]
    write("prompts/agent.md", agent)
    expect(await run(updateArgs, env)).toEqual({
      code: 1,
      stdout: "",
      stderr: [
        "prompt-retrieval: nothing was written; these files and their prompts in the workspace were both changed since the latest import:",
        "prompts/agent.md",
        "Replace the files with export --overwrite, or the prompts with import --overwrite.",
        ""
      ].join("\n")
    })
    expect(await run([...updateArgs, "--overwrite"], env)).toEqual({
      code: 0,
      stdout: `written: prompts/Support/greeting.md\nwritten: prompts/agent.md\n2 files changed in ${directory}\n`,
      stderr: ""
    })
    expect(readFileSync(join(directory, "prompts/agent.md"), "utf8")).toBe(
      agent.replace("Answer.", "Edited.")
    )

    // A binding without a slot and a slot without a binding cause warnings.
    write("prompts/agent.md", agent.replace("{tone: kind}", "{tonee: kind}"))
    expect((await load(production)).stderr).toBe(
      [
        "prompt-retrieval: warning: prompts/agent.md: binds tonee, which is no slot of fragments/tone.md",
        "prompt-retrieval: warning: prompts/agent.md: does not bind the slot {{tone}} of fragments/tone.md",
        ""
      ].join("\n")
    )
    rmSync(join(directory, "prompts"), { recursive: true })
    mkdirSync(join(directory, "prompts"))
    for (const more of [[], ["--dry-run"], ["--dry-run", "--detailed-exitcode"]]) {
      const empty = await load(production, ...more)
      expect(empty).toMatchObject({ code: 1, stdout: "" })
      expect(empty.stderr).toMatch(/ has no prompts, so the import would archive all .*: add --allow-empty$/m)
    }
    expect(await load(production, "--allow-empty")).toMatchObject({ code: 0, stderr: "" })
    expect((await exported(production)).prompts.every(({ is_archived }) => is_archived)).toBe(true)
  })

  it("import accepts the members of an archive in any order and prints what was written", async () => {
    const { archive: original } = sample()
    const sorted = Object.fromEntries(
      Object.entries({
        ...original,
        fragments: [original.fragments[0]!],
        prompts: [original.prompts[1]!]
      }).sort()
    )
    const load = (value: unknown, ...more: ReadonlyArray<string>) =>
      run(["import", "-", ...more], env, typeof value === "string" ? value : JSON.stringify(value))
    const id = original.workspace.id
    const items = "1 prompt, 1 version and 1 fragment"
    const dry = await load(sorted, "--dry-run", "--detailed-exitcode")
    expect(dry).toMatchObject({ code: 2, stderr: "" })
    expect(dry.stdout).toMatch(
      new RegExp(`^Would import ${items} into workspace ${id}: \\d+ rows added, 0 changed, 0 removed\n$`)
    )
    expect(await load(sorted)).toEqual({
      ...dry,
      code: 0,
      stdout: dry.stdout.replace("Would import", "Imported")
    })
    expect(await load(sorted, "--detailed-exitcode")).toEqual({
      code: 0,
      stdout: `Nothing changed in workspace ${id}, which already has the archive's ${items}\n`,
      stderr: ""
    })
    const text = JSON.stringify(sorted)
    expect(await load(text.slice(0, 100), "--detailed-exitcode")).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "prompt-retrieval: nothing was imported; the archive has 1 problem:\nthe archive: is truncated at byte 100\n"
    })
  })

  it("a failed command prints a message without a stack and exits with 1", async () => {
    const unknownId = "00000000-0000-0000-0000-000000000000"
    const cases: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
      [
        ["keys", "list", "--workspace", unknownId],
        /there is no workspace "0{8}-.*"; see 'prompt-retrieval workspaces list'/
      ],
      [["users", "list", "--workspace", unknownId], /there is no workspace/],
      [["export", "--workspace", unknownId], /there is no workspace/],
      [["import", scratch, "--workspace", unknownId], /it has no prompts\/ directory/],
      [["import", join(scratch, "missing")], /cannot read .*missing: ENOENT/],
      [["keys", "revoke", unknownId], /there is no key/],
      [["keys", "rotate", unknownId], /there is no key/],
      [["workspaces", "rename", unknownId, "Name"], /there is no workspace/],
      [["workspaces", "delete", unknownId, "--yes"], /there is no workspace/],
      [["users", "delete", "nobody@example.com"], /there is no user/],
      [["users", "set", "nobody@example.com", "--must-reset", "on"], /there is no user/]
    ]
    for (const [args, message] of cases) expectFailure(args, await run(args, env), 1, message)
  })

  it.each(["SIGINT", "SIGKILL"] as const)(
    "an import that %s interrupts changes nothing and can be repeated",
    async (signal) => {
      const versions = () => Array.from({ length: 5 }, (_, index) => version(index + 1))
      const original = archive({
        prompts: Array.from({ length: 10_000 }, () => prompt({ versions: versions() }))
      })
      const file = join(scratch, `${original.workspace.id}.json`)
      writeFileSync(file, JSON.stringify(original))
      const child = spawn(process.execPath, [currentProgram, "import", file], {
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
        stdio: "ignore"
      })
      const exit = once(child, "exit")
      const database = await resources.acquire(connectTo(env))
      const inside = `select from pg_stat_activity where datname = current_database() and query like 'insert into %'
        and xact_start is not null and pid <> pg_backend_pid()`
      await expect
        .poll(async () => (await database.sql(inside)).length, { timeout: 30_000, interval: 20 })
        .toBe(1)
      child.kill(signal)
      const [code] = await exit
      expect(code).toBe(signal === "SIGINT" ? 130 : null)
      const found = () => database.sql("select from workspaces where id = $1", [original.workspace.id])
      await expect.poll(found, { timeout: 20_000 }).toEqual([])
      await importText({ ...original, prompts: original.prompts.slice(0, 10) })
      expect(await found()).toHaveLength(1)
    }
  )
})
