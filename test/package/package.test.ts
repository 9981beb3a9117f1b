import { execFile, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { embedded, makeResources, postgres } from "../support/database.ts"
import { run as runCommand, type Service, startService } from "../support/service.ts"

const root = join(import.meta.dirname, "../..")
const bin = (name: string) => join(root, "node_modules/.bin", name)
const exec = promisify(execFile)

/** What a program printed, and how it ended. */
const run = async (
  cwd: string,
  command: string,
  args: ReadonlyArray<string>,
  env: Record<string, string> = {}
) => {
  try {
    const { stdout, stderr } = await exec(command, args, {
      cwd,
      env: { ...process.env, ...env },
      maxBuffer: 2 ** 26
    })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, stdout, stderr }
  }
}

const strict = (skipLibCheck: boolean) =>
  JSON.stringify({
    compilerOptions: {
      module: "NodeNext",
      target: "ES2022",
      strict: true,
      noEmit: true,
      skipLibCheck,
      types: [],
      lib: ["ES2022", "DOM"]
    },
    include: ["*.ts"]
  })

/** The Node of a version, from npm. */
const installNode = async (version: string): Promise<string> => {
  const directory = emptyProject(`node-${version}`)
  const manifest = { private: true, allowScripts: { node: true } }
  writeFileSync(join(directory, "package.json"), JSON.stringify(manifest))
  const installed = await run(directory, "npm", ["install", "--no-audit", "--no-fund", `node@${version}`])
  expect(installed).toMatchObject({ code: 0 })
  const node = join(directory, "node_modules/node/bin/node")
  expect((await run(directory, node, ["--version"])).stdout).toBe(`v${version}\n`)
  return node
}

const directories: Array<string> = []
const emptyProject = (name: string): string => {
  const directory = mkdtempSync(join(tmpdir(), `${name}-`))
  directories.push(directory)
  writeFileSync(join(directory, "package.json"), JSON.stringify({ name, private: true, type: "module" }))
  return directory
}

let tarball: string
beforeAll(async () => {
  const directory = mkdtempSync(join(tmpdir(), "tarball-"))
  directories.push(directory)
  const packed = await run(root, "npm", ["pack", "--pack-destination", directory])
  expect(packed).toMatchObject({ code: 0 })
  tarball = join(directory, readdirSync(directory).find((file) => file.endsWith(".tgz"))!)
}, 120_000)
afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const lowestNode = `${/^>=(\d+\.\d+)$/.exec(manifest.engines.node)![1]}.0`

it("engines states a Node that every dependency runs on", () => {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"))
  const numberOf = (version: string) => {
    const [major, minor = 0, patch = 0] = version.split(".").map(Number)
    return major! * 1e6 + minor * 1e3 + patch
  }
  const unmet = Object.entries<{ dev?: boolean; engines?: { node?: string } }>(packages).filter(
    ([name, { dev, engines }]) => {
      const lowest = /^(?:.*\|\| *)?>= *([\d.]+)$/.exec(engines?.node ?? ">=0")
      return name !== "" && !dev && (lowest === null || numberOf(lowest[1]!) > numberOf(lowestNode))
    }
  )
  expect(unmet).toEqual([])
  expect(packages[""].engines).toEqual(manifest.engines)
})

it("publint and are-the-types-wrong find nothing", async () => {
  expect(await run(root, bin("publint"), ["--strict", tarball])).toMatchObject({ code: 0 })
  expect(await run(root, bin("attw"), ["--profile", "esm-only", tarball])).toMatchObject({ code: 0 })
}, 60_000)

describe("the client's consumer, with no other package at all", () => {
  let project: string
  const consumer = (statement: string) => `
import { PromptClient } from "prompt-retrieval/client"
const client = new PromptClient({ apiKey: "key_live_0", baseUrl: "http://127.0.0.1:3000" })
export const program = async () => {
  const { data, meta } = await client.prompts.list({ page: 1, per_page: 50, type: "system", tag: "production" })
  for await (const summary of client.prompts.list({ type: "system" })) console.log(summary.title, meta.total, data.length)
  const { data: resolved } = await client.prompts.getResolved(data[0]!.id)
  ${statement}
}
`
  beforeAll(async () => {
    project = emptyProject("client-consumer")
    const target = join(project, "node_modules/prompt-retrieval")
    mkdirSync(target, { recursive: true })
    expect(await run(project, "tar", ["xzf", tarball, "--strip-components=1", "-C", target])).toMatchObject({
      code: 0
    })
    writeFileSync(join(project, "tsconfig.json"), strict(false))
  })
  const check = (statement: string) => {
    writeFileSync(join(project, "consumer.ts"), consumer(statement))
    return run(project, bin("tsc"), ["-p", "."])
  }

  it("type-checks under strict and NodeNext, its libraries too", async () => {
    expect(
      await check("const content: string = resolved.resolved_content; console.log(content)")
    ).toMatchObject({
      code: 0,
      stdout: ""
    })
  })

  it("has types that a wrong assignment breaks", async () => {
    const { code, stdout } = await check(
      "const content: number = resolved.resolved_content; console.log(content)"
    )
    expect(code).not.toBe(0)
    expect(stdout).toContain("Type 'string' is not assignable to type 'number'")
  })

  it("reads from a running service, on Node 20 too", async () => {
    const resources = makeResources()
    const oldest = await installNode("20.0.0")
    const service: Service = await startService({
      ...(await resources.acquire(embedded.acquire)),
      LOG_LEVEL: "Error"
    })
    try {
      await expect.poll(() => service.output(), { timeout: 20_000 }).toContain("curl")
      const [, key] = /(key_live_[0-9a-f]{64})/.exec(service.output())!
      writeFileSync(
        join(project, "run.js"),
        `import { PromptClient } from "prompt-retrieval/client"
const client = new PromptClient({ apiKey: process.env.KEY, baseUrl: process.env.BASE })
const { data, meta } = await client.prompts.list({ type: "system" })
const { data: resolved } = await client.prompts.getResolved(data[0].id)
console.log(JSON.stringify([meta.total, resolved.fragment_count]))`
      )
      for (const node of [process.execPath, oldest]) {
        expect(await run(project, node, ["run.js"], { KEY: key!, BASE: service.url })).toEqual({
          code: 0,
          stdout: "[1,3]\n",
          stderr: ""
        })
      }
    } finally {
      await service.stop()
      await resources.release()
    }
  }, 120_000)
})

describe("an empty project with the package installed", () => {
  let project: string
  beforeAll(async () => {
    project = emptyProject("consumer")
    const installed = await run(project, "npm", ["install", "--no-audit", "--no-fund", tarball])
    expect(installed).toMatchObject({ code: 0 })
    writeFileSync(join(project, "tsconfig.json"), strict(true))
  }, 240_000)

  it("type-checks a consumer of the core under strict and NodeNext", async () => {
    writeFileSync(
      join(project, "consumer.ts"),
      `import { createPromptApi, PromptApiError, serviceLayer } from "prompt-retrieval"
import { PromptRepo } from "prompt-retrieval/application/PromptRepo"
import { Prompts } from "prompt-retrieval/application/Prompts"
import { resolve } from "prompt-retrieval/domain/Resolution"
export const read = async (id: string): Promise<string> => {
  const api = await createPromptApi({ databaseUrl: "postgres://localhost/test" })
  const { data } = await api.prompts.getResolved({ workspaceId: id, tier: "team" }, id)
  return data.resolved_content
}
export { PromptApiError, PromptRepo, Prompts, resolve, serviceLayer }
// @ts-expect-error there is no such parameter
export const wrong = createPromptApi({ database: 1 })
`
    )
    expect(await run(project, bin("tsc"), ["-p", "."])).toMatchObject({ code: 0, stdout: "" })
  }, 60_000)

  it("runs the command line", async () => {
    const { code, stdout } = await run(project, process.execPath, [
      "node_modules/.bin/prompt-retrieval",
      "--help"
    ])
    expect(code).toBe(0)
    expect(stdout).toContain("serve")
  })

  it("prints a command that issues a key in a project where the package is installed", async () => {
    const resources = makeResources()
    try {
      const env = {
        ...(await resources.acquire(embedded.acquire)),
        PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
        PORT: "0",
        LOG_LEVEL: "Error"
      }
      const ran = await runCommand(["import", join(root, "src/adapters/cli/demo.json")], env)
      expect(ran).toMatchObject({ code: 0 })
      const child = spawn(join(project, "node_modules/.bin/prompt-retrieval"), ["serve"], {
        cwd: project,
        env: { ...process.env, ...env },
        stdio: ["ignore", "pipe", "inherit"]
      })
      let output = ""
      child.stdout.on("data", (chunk) => (output += chunk))
      try {
        const hint = /^To issue a key: (npx prompt-retrieval keys issue --workspace \S+ --user) EMAIL$/m
        await expect.poll(() => output, { timeout: 30_000 }).toMatch(hint)
        const [, command] = hint.exec(output)!
        const issued = await run(project, "sh", ["-c", `${command} ada@example.com`], env)
        expect(issued).toMatchObject({ code: 0 })
        expect(issued.stdout).toMatch(/^key_live_[0-9a-f]{64}\n/)
      } finally {
        const exit = once(child, "exit")
        child.kill("SIGTERM")
        await exit
      }
    } finally {
      await resources.release()
    }
  }, 120_000)

  // The machine's own Node, which may be older than the one that runs the tests.
  const other = spawnSync("/usr/bin/env", ["-i", "sh", "-c", "node --version"], { encoding: "utf8" }).stdout
  it.skipIf(!(Number.parseInt(other.slice(1), 10) < 24))(
    "says at the start that an older Node won't do",
    async () => {
      const main = join(project, "node_modules/prompt-retrieval/dist/main.js")
      const { code, stdout, stderr } = await run(project, "/usr/bin/env", [
        "-i",
        "sh",
        "-c",
        `node ${main} --help`
      ])
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
      expect(stderr).toBe(`prompt-retrieval needs Node 24 or later; this is Node ${other.slice(1)}`)
    }
  )

  it.skipIf(postgres.missing !== undefined)(
    "runs the API in process, on the lowest Node of engines too",
    async () => {
      const resources = makeResources()
      try {
        const env = await resources.acquire(postgres.acquire)
        expect(await runCommand(["import", join(root, "src/adapters/cli/demo.json")], env)).toMatchObject({
          code: 0
        })
        writeFileSync(
          join(project, "run.js"),
          `import { readFileSync } from "node:fs"
import { createPromptApi } from "prompt-retrieval"
const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL })
const { workspace } = JSON.parse(readFileSync(process.argv[2], "utf8"))
const caller = { workspaceId: workspace.id, tier: "solo" }
const { data, meta } = await api.prompts.list(caller, { type: "system" })
const { meta: all } = await api.prompts.list(caller)
const { data: resolved } = await api.prompts.getResolved(caller, data[0].id)
const statuses = await Promise.all(["/api/v1/prompts", "/readyz", "/openapi.json", "/docs"].map(async (path) => {
  const response = await api.handler(new Request("http://localhost" + path))
  await response.text()
  return response.status
}))
console.log(JSON.stringify([all.total, resolved.fragment_count, ...statuses]))
await api.close()`
        )
        const script = ["run.js", join(root, "src/adapters/cli/demo.json")]
        const floor = await installNode(lowestNode)
        for (const node of [process.execPath, floor]) {
          const ran = await run(project, node, script, env)
          expect(ran).toEqual({ code: 0, stdout: "[6,3,401,200,200,200]\n", stderr: "" })
        }
      } finally {
        await resources.release()
      }
    },
    180_000
  )
})
