import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { expect, it, onTestFailed } from "vitest"
import { programVersion } from "../../../src/application/ProgramVersion.ts"
import { freshName, toDatabaseUrl } from "../../support/database/server.ts"
import { freePort } from "../../support/network/ports.ts"
import { isListening } from "../../support/programs/startProgram.ts"
import { parseLogLines } from "../../support/services/logLines.ts"
import { canary } from "../../support/services/secrets.ts"
import { run, startService } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const root = join(import.meta.dirname, "../../..")

const parseLines = (output: string) => parseLogLines(output).map(({ time: _, ...line }) => line)

const dataDir = makeTestDirectory("data-")

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
  expect(output).toContain(`"database":"embedded in ${dataDir}"`)
  expect(output).toContain('"msg":"Stopped prompt-retrieval"')
  expect(await run(["workspaces", "list"], { DATA_DIR: dataDir })).toMatchObject({ code: 0, stderr: "" })
})

it("the log of serve names its version, its settings without passwords, the reason why the database is unavailable, and the shutdown", async () => {
  const database = freshName()
  const url = new URL(toDatabaseUrl(database))
  url.password = canary
  const redisPort = await freePort()
  const service = await startService(
    {
      DATABASE_URL: url.href,
      REDIS_URL: `redis://ada:${canary}@127.0.0.1:${redisPort}/1`,
      RATE_LIMIT_PER_KEY: "7",
      SHUTDOWN_GRACE: "10ms"
    },
    "/healthz"
  )
  const problem = { level: "warn", msg: `PostgreSQL is unavailable: database "${database}" does not exist` }
  await expect.poll(() => parseLines(service.output())).toContainEqual(problem)
  expect((await fetch(`${service.url}/readyz`)).status).toBe(503)
  expect(await service.stop()).toBe(0)
  const lines = parseLines(service.output())
  expect(lines[0]).toEqual({
    level: "info",
    msg: "Starting prompt-retrieval",
    version: programVersion,
    node: process.versions.node,
    database: expect.stringMatching(new RegExp(`^postgres://${url.username}@[^@]+/${database}$`)),
    redis: `redis://127.0.0.1:${redisPort}/1`,
    rate_limit_per_key: 7,
    rate_limit_per_process: 500,
    mcp: "off"
  })
  expect(lines).toContainEqual({ level: "info", msg: `Listening on ${service.url}` })
  const stopping = { msg: "Shutting down prompt-retrieval", shutdown_grace_ms: 10 }
  expect(lines.slice(-2)).toMatchObject([stopping, { msg: "Stopped prompt-retrieval" }])
})
