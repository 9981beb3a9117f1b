import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Archive } from "../../../src/application/formats/Archive.ts"
import { archive, instant, prompt, sample, version, workspace } from "../../support/archives.ts"
import { type Backend, connectTo, embedded, makeResources, postgres } from "../../support/database.ts"
import { type CommandResult, run, type Service, startService } from "../../support/service.ts"

const root = join(import.meta.dirname, "../../..")
const scratch = mkdtempSync(join(tmpdir(), "commands-"))
afterAll(() => rmSync(scratch, { recursive: true }))

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Expects a command to have failed with a message without a stack. */
export const expectFailure = (
  args: ReadonlyArray<string>,
  result: CommandResult,
  code: number,
  message: RegExp
): void => {
  expect({ args, code: result.code, stdout: result.stdout }).toEqual({ args, code, stdout: "" })
  expect(result.stderr).toMatch(message)
  expect(result.stderr).not.toMatch(/^ +at /m)
}

/** Tests the commands beside a running service on one kind of database. */
export const testCommands = ({ acquire, missing, name }: Backend): void => {
  describe.skipIf(missing !== undefined)(
    `commands beside a running service on ${name}`,
    { timeout: 120_000 },
    () => {
      const resources = makeResources()
      let env: Record<string, string>
      let service: Service
      const outputs: Array<string> = []

      beforeAll(async () => {
        env = await resources.acquire(acquire)
        service = await startService({ ...env, LOG_LEVEL: "All" })
      })
      afterAll(async () => {
        if (service !== undefined) await service.stop()
        await resources.release()
      })

      /** Runs a command that must succeed and print nothing but JSON, and returns the value. */
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
      /** Waits until the service has seen a change and responds with the status. */
      const waitForStatus = (path: string, key: string, status: number) =>
        expect.poll(async () => (await get(path, key)).status, { timeout: 5_000 }).toBe(status)

      it("workspaces, keys and users set tier, billing, password reset and revocation, which the service applies, and store no plaintext key", async () => {
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
        const { id, key } = await json(...issue, "--name", "Production")
        const issued = await run(issue, env)
        expect(issued).toMatchObject({ code: 0, stderr: "" })
        expect(issued.stdout).toMatch(
          /^key_live_[0-9a-f]{64}\n\nThis key is shown only once: store it where /
        )
        const summary = `key_live_${key.slice(9, 13)}...${key.slice(-4)}`
        const expectedListing = {
          id,
          key: summary,
          name: "Production",
          owner: "Ada@example.com",
          created_at: expect.stringMatching(time),
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
        expect(table.stdout.split("\n")[0]).toMatch(/^ID +KEY +NAME +OWNER +CREATED +LAST USED +REVOKED$/)
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

      it("export writes the same bytes after each import of its output", async () => {
        const { archive: original } = sample()
        await importText(original)
        const first = join(scratch, `${original.workspace.id}.json`)
        expect(await json("export", "--workspace", original.workspace.id, "--out", first)).toEqual({
          workspace_id: original.workspace.id,
          out: first
        })
        const bytes = readFileSync(first, "utf8")
        const elsewhere = await resources.acquire(acquire)
        for (const _ of [1, 2]) {
          expect(await run(["import", first], elsewhere)).toMatchObject({ code: 0, stderr: "" })
          const again = await run(["export", "--workspace", original.workspace.id], elsewhere)
          expect(again).toEqual({ code: 0, stdout: bytes, stderr: "" })
        }
        const counts = await json("import", first, "--dry-run")
        expect(counts).toMatchObject({ prompts: original.prompts.length, api_keys: 5, users: 2 })
      })

      it("import of a directory applies exactly the changes of its files, and export writes them back", async () => {
        const home = workspace()
        await importText(archive({ workspace: home }))
        const directory = join(scratch, `files-${home.id}`)
        cpSync(join(root, "examples/prompts-as-files"), directory, { recursive: true })
        const load = (...more: ReadonlyArray<string>) =>
          json("import", directory, "--workspace", home.id, ...more)
        const changesOf = ({
          changes
        }: {
          changes: ReadonlyArray<{ change: string; path: string | null }>
        }) => changes.map(({ change, path }) => `${change} ${path}`)
        const all = ["added fragments/tone.md", "added prompts/Support/agent.md", "added prompts/summary.md"]
        expect(changesOf(await load("--dry-run"))).toEqual(all)
        expect(changesOf(await load())).toEqual(all)
        expect(changesOf(await load())).toEqual([])

        writeFileSync(join(directory, "prompts/summary.md"), "---\ntitle: Summary\ntype: poem\n---\nShort\n")
        const rejected = await run(["import", directory, "--workspace", home.id], env)
        expect(rejected).toEqual({
          code: 1,
          stdout: "",
          stderr: `prompt-retrieval: nothing was imported; ${directory} has 1 problem:\nprompts/summary.md: type: Expected "system" | "user" | "assistant" | "template" | "few-shot" | "chain-of-thought"\n`
        })
        writeFileSync(join(directory, "prompts/summary.md"), "---\ntitle: Summary\n---\nShort\n")
        rmSync(join(directory, "prompts/Support"), { recursive: true })
        expect(changesOf(await load())).toEqual(["new version prompts/summary.md", "archived null"])

        const written = join(scratch, `written-${home.id}`)
        await json("export", "--workspace", home.id, "--format", "files", "--out", written)
        expect(readFileSync(join(written, "prompts/summary.md"), "utf8")).toMatch(
          /^---\nid: [0-9a-f-]{36}\ntitle: Summary\ntype: user\n---\nShort\n$/
        )
        const again = await json("import", written, "--workspace", home.id)
        expect(changesOf(again)).toEqual([])
      })

      it("a failed command prints a message without a stack and exits with 1", async () => {
        const unknownId = "00000000-0000-0000-0000-000000000000"
        const cases: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
          [["keys", "list", "--workspace", unknownId], /there is no workspace 0{8}-.*: see workspaces list/],
          [["users", "list", "--workspace", unknownId], /there is no workspace/],
          [["export", "--workspace", unknownId], /there is no workspace/],
          [["import", scratch, "--workspace", unknownId], /it has no prompts\/ directory/],
          [["import", join(scratch, "missing")], /cannot read .*missing: ENOENT/],
          [["keys", "revoke", unknownId], /there is no key/],
          [["users", "set", "nobody@example.com", "--must-reset", "on"], /there is no user/]
        ]
        for (const [args, message] of cases) expectFailure(args, await run(args, env), 1, message)
      })

      it.each(["SIGINT", "SIGKILL"] as const)(
        "an import that %s ends changes nothing and can be repeated",
        async (signal) => {
          const versions = () => Array.from({ length: 5 }, (_, index) => version(index + 1))
          const original = archive({
            prompts: Array.from({ length: 10_000 }, () => prompt({ versions: versions() }))
          })
          const file = join(scratch, `${original.workspace.id}.json`)
          writeFileSync(file, JSON.stringify(original))
          const child = spawn(process.execPath, [join(root, "src/main.ts"), "import", file], {
            env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
            stdio: "ignore"
          })
          const exit = once(child, "exit")
          const database = await resources.acquire(connectTo(env))
          if (name === postgres.name) {
            const inside = `select from pg_stat_activity where datname = current_database() and query like '%recordset%'
        and xact_start is not null and pid <> pg_backend_pid()`
            await expect
              .poll(async () => (await database.sql(inside)).length, { timeout: 30_000, interval: 20 })
              .toBe(1)
          } else {
            // The import holds the only session of the embedded database, so its progress cannot be queried.
            await setTimeout(2_500)
          }
          child.kill(signal)
          const [code] = await exit
          expect(code).toBe(signal === "SIGINT" ? 130 : null)
          const found = () => database.sql("select from workspaces where id = $1", [original.workspace.id])
          await expect.poll(found, { timeout: 20_000 }).toEqual([])
          await importText({ ...original, prompts: original.prompts.slice(0, 10) })
          expect(await found()).toHaveLength(1)
        }
      )

      if (name === embedded.name) {
        it("committed imports survive any number of SIGKILLs of the service, at any time", async () => {
          const imported: Array<string> = []
          for (let round = 0; round < 3; round++) {
            const { archive: original } = sample()
            await importText(original)
            imported.push(original.workspace.id)
            const cutShort = run(["import", "-"], env, JSON.stringify(sample().archive))
            await setTimeout(200 + 400 * round)
            const exit = once(service.process, "exit")
            service.process.kill("SIGKILL")
            await exit
            await cutShort
            service = await startService({ ...env, LOG_LEVEL: "All" })
            const ids = (await json("workspaces", "list")).map(({ id }: { id: string }) => id)
            expect(ids).toEqual(expect.arrayContaining(imported))
            const { code, stdout } = await run(["export", "--workspace", imported[0]!], env)
            expect(code).toBe(0)
            expect(JSON.parse(stdout).prompts).toHaveLength(original.prompts.length)
          }
        })

        it("a second serve on the same DATA_DIR exits with 1 and says that the directory is in use", async () => {
          const second = await run(["serve"], { ...env, PORT: "0" })
          expect(second).toMatchObject({ code: 1, stdout: "" })
          expect(second.stderr).toContain(`${env.DATA_DIR} is in use by another process`)
        })
      }
    }
  )
}
