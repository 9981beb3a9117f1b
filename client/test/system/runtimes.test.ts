import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { promisify } from "node:util"
import { build as buildWithEsbuild } from "esbuild"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { build as buildWithVite } from "vite"
import { startDemoApi } from "../../../test/api/startApi.ts"
import { makeResources } from "../../../test/support/database.ts"
import { openBrowser, type Playwright } from "../../../test/support/programs/browser.ts"
import { install, installNode, makeProject, pack, run } from "../../../test/support/programs/packages.ts"
import { freePort } from "../../../test/support/ports.ts"
import { runProgram } from "../../../test/support/programs/programs.ts"
import { findTool, toolsDirectory } from "../../../test/support/programs/tools.ts"

const client = join(import.meta.dirname, "../..")
const requireTool = createRequire(join(toolsDirectory, "package.json"))

const api = startDemoApi()
const agent = api.archive.prompts.find(({ title }) => title === "Support agent")!

/** A program that uses every part of the client that depends on the runtime. */
const program = `
import { fillSlots, PromptClient, verifyBundle } from "@prompt-retrieval/client"
export const start = async ({ apiKey, baseUrl, id, bundle }) => {
  const client = new PromptClient({ apiKey, baseUrl, cache: {} })
  const titles = []
  for await (const { title } of client.prompts.list({ per_page: 4 })) titles.push(title)
  await client.prompts.getResolved(id)
  const { data, source } = await client.prompts.getResolved(id)
  const text = fillSlots(data.resolved_content, { shop: "Acme" }).slice(0, 32)
  const { prompts } = await verifyBundle(bundle)
  const error = await verifyBundle({ ...bundle, sha256: "" }).catch((error) => error)
  return JSON.stringify({ titles: titles.length, source, text, prompts: prompts.length, rejected: error.name })
}
`
const expected = {
  titles: 6,
  source: "cached",
  text: "You are a support agent of Acme.",
  prompts: 6,
  rejected: "BundleError"
}

/** Runs the program with its parameters, which are one argument in JSON, and prints the result. */
const entry = `
import { start } from "./program.js"
console.log(await start(JSON.parse(process.argv[2])))
`

/** Loads the client with require() and prints the error message for an empty name. */
const required = `
const { PromptClient } = require("@prompt-retrieval/client")
new PromptClient({ apiKey: "k" }).prompts.get("").catch(({ message }) => console.log(message))
`
const loaded = "prompt must be a name or an id\n"

/** A project with the packed client installed, and with the bundle that the command pull of the client has written. */
let project: string
let pulled: Awaited<ReturnType<typeof run>>
let parameters: string
beforeAll(async () => {
  project = makeProject("runtimes")
  await install(project, await pack(client))
  writeFileSync(join(project, "program.js"), program)
  writeFileSync(join(project, "entry.js"), entry)
  writeFileSync(join(project, "required.cjs"), required)
  const env = { PROMPT_RETRIEVAL_KEY: api.key, PROMPT_RETRIEVAL_URL: api.service().url }
  pulled = await run(project, "npx", ["--offline", "--no", "@prompt-retrieval/client", "pull"], env)
  const bundle = JSON.parse(readFileSync(join(project, "prompts.bundle.json"), "utf8"))
  const { url: baseUrl } = api.service()
  parameters = JSON.stringify({ apiKey: api.key, baseUrl, id: agent.id, bundle })
}, 120_000)

it("npx --no @prompt-retrieval/client pull writes the bundle in a project with the packed client", () => {
  expect(pulled).toMatchObject({ code: 0, stdout: "6 prompts: prompts.bundle.json and prompts.ts changed\n" })
})

const parse = ({ code, stdout, stderr }: Awaited<ReturnType<typeof run>>) => {
  if (code !== 0) throw new Error(stdout + stderr)
  return JSON.parse(stdout)
}

describe("Node", () => {
  it.each(["20.0.0", "22.19.0", "24.0.0", "26.10.0"])(
    "Node %s runs the packed client with import, and with require() unless the version has no require() of ES modules",
    async (version) => {
      const node = await installNode(version)
      expect(parse(await run(project, node, ["entry.js", parameters]))).toEqual(expected)
      const { code } = await run(project, node, ["required.cjs"])
      expect(code).toBe(version === "20.0.0" ? 1 : 0)
    },
    120_000
  )

  it("the lowest supported version of Node runs the command pull of the packed client", async () => {
    const node = await installNode("20.0.0")
    const main = "node_modules/@prompt-retrieval/client/dist/pull/main.js"
    expect(await run(project, node, [main, "pull", "--frozen"])).toEqual({ code: 0, stdout: "", stderr: "" })
  })
})

describe("other runtimes", () => {
  it("Bun runs the packed client, with import and require()", async () => {
    const bun = findTool("@oven/bun-*/bin/bun")
    expect(parse(await run(project, bun, ["entry.js", parameters]))).toEqual(expected)
    expect(await run(project, bun, ["required.cjs"])).toMatchObject({ code: 0, stdout: loaded })
  })

  it("Deno imports and runs the packed client with only the permission to connect, and requires it with only the permission to read", async () => {
    const deno = findTool("@deno/*/deno")
    writeFileSync(
      join(project, "deno.js"),
      'import { start } from "./program.js"\nconsole.log(await start(JSON.parse(Deno.args[0])))\n'
    )
    const env = { DENO_NO_UPDATE_CHECK: "1", DENO_DIR: join(project, ".deno") }
    const args = ["run", "--no-prompt", "--cached-only", `--allow-net=${new URL(api.service().url).host}`]
    expect(parse(await run(project, deno, [...args, "deno.js", parameters], env))).toEqual(expected)
    const read = ["run", "--no-prompt", "--cached-only", "--allow-read"]
    expect(await run(project, deno, [...read, "required.cjs"], env)).toMatchObject({
      code: 0,
      stdout: loaded
    })
  })

  it("Cloudflare's workerd runs the packed client", async () => {
    const resources = makeResources()
    try {
      await buildWithEsbuild({
        stdin: {
          contents:
            'import { start } from "./program.js"\nexport default { fetch: async (request) => new Response(await start(await request.json())) }',
          resolveDir: project
        },
        bundle: true,
        format: "esm",
        conditions: ["workerd", "worker"],
        outfile: join(project, "worker.js")
      })
      const port = await freePort()
      writeFileSync(
        join(project, "workerd.capnp"),
        `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker.js", esModule = embed "worker.js")],
      compatibilityDate = "2026-01-01",
      globalOutbound = "loopback"
    )),
    (name = "loopback", network = (allow = ["local"]))
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
`
      )
      const workerd = findTool("@cloudflare/workerd-*/bin/workerd")
      await resources.acquire(runProgram(workerd, ["serve", join(project, "workerd.capnp")], port))
      const response = await fetch(`http://127.0.0.1:${port}`, { method: "POST", body: parameters })
      const text = await response.text()
      expect({ status: response.status, text }).toEqual({ status: 200, text: JSON.stringify(expected) })
    } finally {
      await resources.release()
    }
  })
})

const library = { entry: "program.js", name: "Program" }

/** Functions that build the program as one script for browsers. The script defines the global `Program`. */
const bundlers: Readonly<Record<string, () => Promise<string>>> = {
  esbuild: async () => {
    const { outputFiles } = await buildWithEsbuild({
      entryPoints: [join(project, library.entry)],
      bundle: true,
      minify: true,
      platform: "browser",
      format: "iife",
      globalName: library.name,
      write: false
    })
    return outputFiles[0]!.text
  },
  Vite: async () => {
    const lib = { entry: join(project, library.entry), formats: ["iife" as const], name: library.name }
    const output = await buildWithVite({
      root: project,
      configFile: false,
      logLevel: "error",
      build: { write: false, lib }
    })
    // biome-ignore lint/suspicious/noExplicitAny: the type also covers builds that watch
    return (output as any)[0].output[0].code
  },
  webpack: async () => {
    const compiler = requireTool("webpack")({
      mode: "production",
      context: project,
      entry: `./${library.entry}`,
      output: { path: project, filename: "webpack.js", library: { name: library.name, type: "var" } }
    })
    const stats = await promisify(compiler.run.bind(compiler))()
    expect(stats.toJson({ all: false, errors: true, warnings: true })).toMatchObject({
      errors: [],
      warnings: []
    })
    return readFileSync(join(project, "webpack.js"), "utf8")
  },
  Rollup: async () => {
    const { nodeResolve } = requireTool("@rollup/plugin-node-resolve")
    const warnings: Array<unknown> = []
    const bundle = await requireTool("rollup").rollup({
      input: join(project, library.entry),
      plugins: [nodeResolve({ browser: true })],
      onwarn: (warning: unknown) => void warnings.push(warning)
    })
    const { output } = await bundle.generate({ format: "iife", name: library.name })
    expect(warnings).toEqual([])
    return output[0].code
  }
}

describe("a browser", () => {
  const resources = makeResources()
  let page: Playwright
  beforeAll(async () => {
    const context = await resources.acquire(openBrowser)
    page = await context.newPage()
    // The service sends no CORS headers, so the page must have the same origin as the service.
    await page.goto(`${api.service().url}/healthz`)
  }, 60_000)
  afterAll(() => resources.release())

  it.each(Object.keys(bundlers))(
    "Chromium runs the packed client in a script that %s builds",
    async (bundler) => {
      const script = await bundlers[bundler]!()
      const result = await page.evaluate(`(async () => { ${script}; return Program.start(${parameters}) })()`)
      expect(JSON.parse(result as string)).toEqual(expected)
    }
  )
})
