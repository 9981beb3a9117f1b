import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it, onTestFailed } from "vitest"
import { embedded, makeResources } from "../../support/database.ts"
import { parseLogLines } from "../../support/logLines.ts"
import { freePort } from "../../support/ports.ts"
import { freshName, onServer, toDatabaseUrl } from "../../support/postgres.ts"
import { isListening } from "../../support/programs/programs.ts"
import { run, startService } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"

const root = join(import.meta.dirname, "../../..")

const parseLines = (output: string) => parseLogLines(output).map(({ time: _, ...line }) => line)

const resources = makeResources()
let version: string
let dataDir: string
beforeAll(async () => {
  version = (await run(["--version"], {})).stdout.trim().replace(/^.* v?/, "")
  dataDir = (await resources.acquire(embedded.acquire)).DATA_DIR!
})
afterAll(() => resources.release())

it("npm start forwards SIGTERM to the service, and the service stops and releases DATA_DIR", async () => {
  const port = await freePort()
  // The processes form a group, so that all of them can be killed, even if the test fails.
  const npm = spawn("npm", ["start"], {
    cwd: root,
    detached: true,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATA_DIR: dataDir, PORT: String(port) },
    stdio: ["ignore", "pipe", "pipe"]
  })
  onTestFailed(() => void process.kill(-npm.pid!, "SIGKILL"))
  let output = ""
  for (const stream of [npm.stdout, npm.stderr]) stream.on("data", (chunk) => (output += chunk))
  await expect.poll(() => output).toContain("Ready to serve requests")
  const exited = once(npm, "exit")
  npm.kill("SIGTERM")
  expect(await exited, output).toEqual([0, null])
  await expect.poll(() => isListening(port)).toBe(false)
  expect(output).toContain('"msg":"Stopped prompt-retrieval"')
  expect(await run(["workspaces", "list"], { DATA_DIR: dataDir })).toMatchObject({ code: 0, stderr: "" })
})

describe("the log of serve", () => {
  it("the log of serve begins with version, database, Redis and limits, and ends with the shutdown", async () => {
    const redisPort = await freePort()
    const service = await startService({
      DATA_DIR: dataDir,
      REDIS_URL: `redis://ada:s3cret@127.0.0.1:${redisPort}/1`,
      RATE_LIMIT_PER_KEY: "7",
      SHUTDOWN_GRACE: "10ms"
    })
    expect(await service.stop()).toBe(0)
    const lines = parseLines(service.output())
    expect(lines[0]).toEqual({
      level: "info",
      msg: "Starting prompt-retrieval",
      version,
      node: process.versions.node,
      database: `embedded in ${dataDir}`,
      redis: `redis://127.0.0.1:${redisPort}/1`,
      rate_limit_per_key: 7,
      rate_limit_per_process: 500,
      mcp: "off"
    })
    expect(lines.map(({ msg }) => msg)).toEqual(
      expect.arrayContaining([`Listening on ${service.url}`, "Ready to serve requests"])
    )
    expect(lines.slice(-2)).toEqual([
      { level: "info", msg: "Shutting down prompt-retrieval", version, shutdown_grace_ms: 10 },
      { level: "info", msg: "Stopped prompt-retrieval", version }
    ])
    expect(service.output()).not.toContain("s3cret")
  })

  it("if serve fails to start, the log contains the settings before the error", async () => {
    const { code, stderr } = await run(["serve"], { DATA_DIR: join(root, "package.json"), PORT: "0" })
    expect(code).toBe(1)
    const [first, second] = stderr.split("\n")
    expect(JSON.parse(first!).msg).toBe("Starting prompt-retrieval")
    expect(second).toMatch(
      /^prompt-retrieval: DATA_DIR: \S+ cannot be used: EEXIST: file already exists, mkdir/
    )
  })

  describe("the log of serve with a PostgreSQL server", () => {
    const { name, sql } = makeTestDatabase()

    it("serve logs immediately that a database does not exist, without the password of the URL", async () => {
      const database = freshName()
      const url = new URL(toDatabaseUrl(database))
      url.password = "s3cret"
      const service = await startService({ DATABASE_URL: url.href }, "/healthz")
      const problem = `PostgreSQL is unavailable: database "${database}" does not exist`
      const findProblem = () => parseLines(service.output()).filter(({ msg }) => msg === problem)
      await expect.poll(findProblem).toEqual([{ level: "warn", msg: problem }])
      expect((await fetch(`${service.url}/readyz`)).status).toBe(503)
      expect(await service.stop()).toBe(0)
      expect(parseLines(service.output())[0]?.database).toMatch(
        new RegExp(`^postgres://${url.username}@[^@]+/${database}$`)
      )
      expect(service.output()).not.toContain("s3cret")
    })

    it("serve exits with 1 and the reason of the server if its database role lacks a privilege", async () => {
      const role = await resources.acquire(
        Effect.acquireRelease(
          Effect.tap(Effect.sync(freshName), (role) => onServer(`create role ${role} login`)),
          (role) => onServer(`drop role ${role}`)
        )
      )
      const env = { DATABASE_URL: toDatabaseUrl(name, role), PORT: "0", LOG_LEVEL: "warn" }
      const serveAndFail = async () => {
        const { code, stderr } = await run(["serve"], env)
        expect(code).toBe(1)
        return stderr
      }
      expect(await serveAndFail()).toBe(
        `prompt-retrieval: permission denied for table prompt_retrieval_migrations; deploy/roles.sql grants the privileges of each role\n`
      )
      await sql(`grant select on all tables in schema public to ${role}`)
      await sql(`revoke select on prompts, api_keys from ${role}`)
      expect(await serveAndFail()).toBe(
        `prompt-retrieval: permission denied for table api_keys; deploy/roles.sql grants the privileges of each role\n`
      )
      await sql(`alter role ${role} in database ${name} set search_path = nowhere`)
      expect(await serveAndFail()).toBe(
        `prompt-retrieval: the database's schema needs a migration, which the server rejected: no schema has been selected to create in\n`
      )
    })
  })

  it("serve logs the requests of probes only at the level debug", async () => {
    for (const [LOG_LEVEL, levels] of [
      ["info", {}],
      ["debug", { "/healthz": "debug", "/readyz": "debug" }]
    ] as const) {
      const service = await startService({ DATA_DIR: dataDir, LOG_LEVEL })
      await (await fetch(`${service.url}/healthz`)).text()
      await (await fetch(`${service.url}/api/v1/prompts`)).text()
      expect(await service.stop()).toBe(0)
      const requests = parseLines(service.output()).filter(({ msg }) => msg === "request")
      expect(Object.fromEntries(requests.map(({ route, level }) => [route, level]))).toEqual({
        "/api/v1/prompts": "info",
        ...levels
      })
    }
  })
})
