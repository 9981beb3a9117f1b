import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { build } from "esbuild"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { programVersion } from "../../src/application/support/ProgramVersion.ts"
import { embedded, makeResources, postgres } from "../support/database.ts"
import {
  bin,
  install,
  installNode,
  makeDirectory,
  makeProject,
  nodes,
  pack,
  removeDirectories,
  run
} from "../support/programs/packages.ts"
import { run as runCommand, type Service, startService } from "../support/service.ts"

const root = join(import.meta.dirname, "../..")

interface DemoPrompt {
  readonly id: string
  readonly title: string
  readonly is_archived: boolean
  readonly updated_at: string
}

const makeStrictConfig = (skipLibCheck: boolean) =>
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

let tarball: string
beforeAll(async () => {
  tarball = await pack(root)
}, 120_000)
afterAll(removeDirectories)

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const lowestNode = `${/^>=(\d+)$/.exec(manifest.engines.node)![1]}.0.0`
/** The newest Node when this was last changed. */
const highestNode = "26.10.0"

it("the version in the code is the version of the package", () => {
  expect(programVersion).toBe(manifest.version)
})

it("every link of the README leads to a file of the tarball", async () => {
  const { stdout } = await run(root, "tar", ["tzf", tarball])
  const files = stdout.split("\n").map((path) => path.replace(/^package\//, ""))
  const links = [...readFileSync(join(root, "README.md"), "utf8").matchAll(/\]\((?!https?:)([^)#]+)/g)]
  const missing = links
    .map(([, path]) => path!)
    .filter((path) => !files.some((file) => `${file}/`.startsWith(`${path}/`)))
  expect(links.length).toBeGreaterThan(10)
  expect(missing).toEqual([])
})

it("the lowest Node of engines runs every dependency", () => {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"))
  const toNumber = (version: string) => {
    const [major, minor = 0, patch = 0] = version.split(".").map(Number)
    return major! * 1e6 + minor * 1e3 + patch
  }
  const unmet = Object.entries<{ dev?: boolean; engines?: { node?: string } }>(packages).filter(
    ([name, { dev, engines }]) => {
      const lowest = /^(?:.*\|\| *)?>= *([\d.]+)$/.exec(engines?.node ?? ">=0")
      return name !== "" && !dev && (lowest === null || toNumber(lowest[1]!) > toNumber(lowestNode))
    }
  )
  expect(unmet).toEqual([])
  expect(packages[""].engines).toEqual(manifest.engines)
})

describe("prompt-retrieval/client in a project without other packages", () => {
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
    project = makeProject("client-consumer")
    const target = join(project, "node_modules/prompt-retrieval")
    mkdirSync(target, { recursive: true })
    expect(await run(project, "tar", ["xzf", tarball, "--strip-components=1", "-C", target])).toMatchObject({
      code: 0
    })
    writeFileSync(join(project, "tsconfig.json"), makeStrictConfig(false))
  })
  const check = (statement: string) => {
    writeFileSync(join(project, "consumer.ts"), consumer(statement))
    return run(project, bin("tsc"), ["-p", "."])
  }

  it("a consumer of prompt-retrieval/client type-checks with strict, NodeNext and skipLibCheck off", async () => {
    expect(
      await check("const content: string = resolved.resolved_content; console.log(content)")
    ).toMatchObject({
      code: 0,
      stdout: ""
    })
  })

  it("a wrong assignment from prompt-retrieval/client does not type-check", async () => {
    const { code, stdout } = await check(
      "const content: number = resolved.resolved_content; console.log(content)"
    )
    expect(code).not.toBe(0)
    expect(stdout).toContain("Type 'string' is not assignable to type 'number'")
  })
})

describe("clients of a running service", () => {
  const resources = makeResources()
  const demo = JSON.parse(readFileSync(join(root, "src/demo/workspace.json"), "utf8"))
  const agent = demo.prompts.find(({ title }: DemoPrompt) => title === "Support agent")
  const listedTitles = demo.prompts
    .filter((prompt: DemoPrompt) => !prompt.is_archived)
    .toSorted((a: DemoPrompt, b: DemoPrompt) => (a.updated_at + a.id < b.updated_at + b.id ? 1 : -1))
    .map(({ title }: DemoPrompt) => title)
  let service: Service
  let env: Readonly<Record<string, string>>
  let project: string
  beforeAll(async () => {
    const database = await resources.acquire(embedded.acquire)
    service = await startService({ ...database, LOG_LEVEL: "Error" }, "/readyz", ["--demo"])
    const findKey = () => /key_live_[0-9a-f]{64}/.exec(service.output())?.[0]
    env = {
      PROMPT_RETRIEVAL_KEY: await vi.waitUntil(findKey, { timeout: 20_000 }),
      PROMPT_RETRIEVAL_URL: service.url
    }
    project = makeProject("client-user")
    await install(project, await pack(join(root, "client")))
    const alias = join(project, "node_modules/prompt-retrieval")
    mkdirSync(alias)
    expect(await run(project, "tar", ["xzf", tarball, "--strip-components=1", "-C", alias])).toMatchObject({
      code: 0
    })
  }, 120_000)
  afterAll(async () => {
    await service?.stop()
    await resources.release()
  })

  it.each(
    ["@prompt-retrieval/client", "prompt-retrieval/client"].flatMap((specifier) =>
      (Object.keys(nodes) as Array<keyof typeof nodes>).map((version) => [specifier, version] as const)
    )
  )("%s reads from a running service under %s, without any other package", async (specifier, version) => {
    writeFileSync(
      join(project, "main.js"),
      `import { fillSlots, NotFoundError, PromptClient } from "${specifier}"
const client = new PromptClient({ apiKey: process.env.PROMPT_RETRIEVAL_KEY, baseUrl: process.env.PROMPT_RETRIEVAL_URL, cache: {} })
const titles = []
for await (const { title } of client.prompts.list({ per_page: 4 })) titles.push(title)
const id = process.argv[2]
const sources = [await client.prompts.get(id), await client.prompts.get(id)].map(({ source }) => source)
const { data } = await client.prompts.getResolved(id)
const filled = fillSlots(data.resolved_content, { shop: "Acme" }).slice(0, 32)
const missing = await client.prompts.versions.get(id, 99).catch((error) => error instanceof NotFoundError)
const { meta } = await client.prompts.versions.list(id)
console.log(JSON.stringify({ titles, sources, fragments: data.fragment_count, filled, missing, meta }))
`
    )
    const [node, path] = nodes[version]
    const { code, stdout, stderr } = await run(project, node, ["main.js", agent.id], { ...env, ...path })
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    expect(JSON.parse(stdout)).toEqual({
      titles: listedTitles,
      sources: ["fresh", "cached"],
      fragments: 3,
      filled: "You are a support agent of Acme.",
      missing: true,
      meta: { page: 1, per_page: 20, total: 3 }
    })
  })
})

describe("a project with prompt-retrieval installed", () => {
  let project: string
  beforeAll(async () => {
    project = makeProject("consumer")
    await install(project, tarball)
    writeFileSync(join(project, "tsconfig.json"), makeStrictConfig(true))
  }, 240_000)

  it("a consumer of prompt-retrieval type-checks with strict and NodeNext", async () => {
    writeFileSync(
      join(project, "consumer.ts"),
      `import { createPromptApi, PromptApiError, serviceLayer } from "prompt-retrieval"
import { KeyStore } from "prompt-retrieval/application/ports/KeyStore"
import { PromptRepo } from "prompt-retrieval/application/ports/PromptRepo"
import { Prompts } from "prompt-retrieval/application/Prompts"
import { resolve } from "prompt-retrieval/domain/Resolution"
export const read = async (id: string): Promise<string> => {
  const api = await createPromptApi({ databaseUrl: "postgres://localhost/test" })
  const { data } = await api.prompts.getResolved({ workspaceId: id, tier: "team" }, id)
  return data.resolved_content
}
export { KeyStore, PromptApiError, PromptRepo, Prompts, resolve, serviceLayer }
// @ts-expect-error there is no such parameter
export const wrong = createPromptApi({ database: 1 })
`
    )
    expect(await run(project, bin("tsc"), ["-p", "."])).toMatchObject({ code: 0, stdout: "" })
  }, 60_000)

  it("an installed prompt-retrieval runs its command line", async () => {
    const { code, stdout } = await run(project, process.execPath, [
      "node_modules/.bin/prompt-retrieval",
      "--help"
    ])
    expect(code).toBe(0)
    expect(stdout).toContain("serve")
  })

  it("serve --demo in a project with prompt-retrieval installed prints a command that issues a key", async () => {
    const resources = makeResources()
    try {
      const env = {
        ...(await resources.acquire(embedded.acquire)),
        PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
        PORT: "0",
        LOG_LEVEL: "Error"
      }
      const imported = await runCommand(["import", join(root, "src/demo/workspace.json")], env)
      expect(imported).toMatchObject({ code: 0 })
      const child = spawn(join(project, "node_modules/.bin/prompt-retrieval"), ["serve", "--demo"], {
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

  // The Node installed on the machine may be older than the one that runs the tests.
  const machineVersion = spawnSync("/usr/bin/env", ["-i", "sh", "-c", "node --version"], {
    encoding: "utf8"
  }).stdout
  it.skipIf(!(Number.parseInt(machineVersion.slice(1), 10) < 24))(
    "the command line exits with 1 and names the Node it needs when started with an older one",
    async () => {
      const main = join(project, "node_modules/prompt-retrieval/dist/main.js")
      const { code, stdout, stderr } = await run(project, "/usr/bin/env", [
        "-i",
        "sh",
        "-c",
        `node ${main} --help`
      ])
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
      expect(stderr).toBe(`prompt-retrieval needs Node 24 or later; this is Node ${machineVersion.slice(1)}`)
    }
  )

  describe("createPromptApi of an installed prompt-retrieval", () => {
    const resources = makeResources()
    let env: Record<string, string>
    let script: ReadonlyArray<string>
    /** The Nodes that the tests run under, by their versions. */
    let installed: Readonly<Record<string, string>>
    const versions = [lowestNode, highestNode]

    beforeAll(async () => {
      installed = Object.fromEntries(
        await Promise.all(versions.map(async (version) => [version, await installNode(version)] as const))
      )
      env = await resources.acquire(postgres.acquire)
      expect(await runCommand(["import", join(root, "src/demo/workspace.json")], env)).toMatchObject({
        code: 0
      })
      script = [join(root, "src/demo/workspace.json")]
      writeFileSync(
        join(project, "run.js"),
        `import { readFileSync } from "node:fs"
import { createPromptApi } from "prompt-retrieval"
const run = async () => {
  const [, , file] = process.argv
  const basePath = "/prompts"
  const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL, metrics: true, basePath })
  const { workspace } = JSON.parse(readFileSync(file, "utf8"))
  const caller = { workspaceId: workspace.id, tier: "solo" }
  const { data, meta } = await api.prompts.list(caller, { type: "system" })
  const { meta: all } = await api.prompts.list(caller)
  const { data: resolved } = await api.prompts.getResolved(caller, data[0].id)
  const request = async (path, headers = {}) => {
    const response = await api.handler(new Request("http://localhost" + basePath + path, { headers }))
    return [response.status, await response.text()]
  }
  const pages = await Promise.all(["/api/v1/prompts", "/readyz", "/openapi.json", "/docs"].map((path) => request(path)))
  const statuses = pages.map(([status]) => status)
  const { info, servers } = JSON.parse(pages[2][1])
  const isCounted = api.metrics().includes('route="/docs"')
  console.log(JSON.stringify({ total: all.total, fragments: resolved.fragment_count, statuses, info, servers, isCounted }))
  await api.close()
}
run()`
      )
    }, 240_000)
    afterAll(() => resources.release())

    const expectOutput = ({ code, stdout }: Awaited<ReturnType<typeof run>>) => {
      expect({ code, output: stdout === "" ? "" : JSON.parse(stdout) }).toEqual({
        code: 0,
        output: {
          total: 6,
          fragments: 3,
          statuses: [401, 200, 200, 200],
          info: expect.objectContaining({ version: manifest.version }),
          servers: [{ url: "/prompts" }],
          isCounted: true
        }
      })
    }

    it.each(versions)(
      "works under Node %s",
      async (version) => {
        const result = await run(project, installed[version]!, ["run.js", ...script], env)
        expect(result.stderr).toBe("")
        expectOutput(result)
      },
      60_000
    )

    it.each(
      versions.flatMap((version) => (["esm", "cjs"] as const).map((format) => [format, version] as const))
    )(
      "bundled by esbuild as %s in an empty folder works under Node %s",
      async (format, version) => {
        const directory = makeDirectory("bundle")
        const bundle = join(directory, format === "esm" ? "bundle.mjs" : "bundle.cjs")
        await build({
          entryPoints: [join(project, "run.js")],
          bundle: true,
          platform: "node",
          format,
          outfile: bundle,
          logLevel: "error"
        })
        expect(readdirSync(directory)).toEqual([basename(bundle)])
        const result = await run(directory, installed[version]!, [bundle, ...script], env)
        expect(result.stderr).toBe("")
        expectOutput(result)
      },
      60_000
    )
  })
})
