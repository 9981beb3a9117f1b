import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import { afterAll, beforeAll, expect, it } from "vitest"
import { startDemoApi } from "../../../test/api/startApi.ts"
import { makeResources } from "../../../test/support/database.ts"
import { openBrowser } from "../../../test/support/programs/browser.ts"
import { install, installNode, makeProject, pack, run } from "../../../test/support/programs/packages.ts"
import { freePort } from "../../../test/support/ports.ts"
import { runProgram } from "../../../test/support/programs/programs.ts"
import { findTool } from "../../../test/support/programs/tools.ts"

const client = join(import.meta.dirname, "../..")
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
const expected = JSON.stringify({
  titles: 6,
  source: "cached",
  text: "You are a support agent of Acme.",
  prompts: 6,
  rejected: "BundleError"
})

/** Loads the client with require() and prints the error message for an empty name. */
const required = `
const { PromptClient } = require("@prompt-retrieval/client")
new PromptClient({ apiKey: "k" }).prompts.get("").catch(({ message }) => console.log(message))
`
const loaded = { code: 0, stdout: "prompt must be a name or an id\n" }

/** A project with the packed client installed, and with the bundle that the command pull of the client has written. */
let project: string
let pulled: Awaited<ReturnType<typeof run>>
let parameters: string
const write = (name: string, text: string) => writeFileSync(join(project, name), text)
const resources = makeResources()
afterAll(resources.release)
beforeAll(async () => {
  project = makeProject("runtimes")
  await install(project, await pack(client))
  write("program.js", program)
  write(
    "entry.js",
    'import { start } from "./program.js"\nconsole.log(await start(JSON.parse(process.argv[2])))\n'
  )
  write("required.cjs", required)
  const baseUrl = api.service().url
  const env = { PROMPT_RETRIEVAL_KEY: api.key, PROMPT_RETRIEVAL_URL: baseUrl }
  pulled = await run(project, "npx", ["--offline", "--no", "@prompt-retrieval/client", "pull"], env)
  const bundle = JSON.parse(readFileSync(join(project, "prompts.bundle.json"), "utf8"))
  parameters = JSON.stringify({ apiKey: api.key, baseUrl, id: agent.id, bundle })
}, 120_000)

it("npx --no @prompt-retrieval/client pull writes the bundle, and the lowest supported version of Node verifies it", async () => {
  expect(pulled).toMatchObject({ code: 0, stdout: "6 prompts: prompts.bundle.json and prompts.ts changed\n" })
  const main = "node_modules/@prompt-retrieval/client/dist/pull/main.js"
  const frozen = await run(project, await installNode("20.0.0"), [main, "pull", "--frozen"])
  expect(frozen).toEqual({ code: 0, stdout: "", stderr: "" })
})

it.each(["20.0.0", "22.19.0", "24.0.0", "26.10.0", "Bun"])(
  "Node %s, or Bun, runs the packed client with import, and with require() unless Node has no require() of ES modules",
  async (version) => {
    const runtime = version === "Bun" ? findTool("@oven/bun-*/bin/bun") : await installNode(version)
    const imported = await run(project, runtime, ["entry.js", parameters])
    expect(imported).toMatchObject({ code: 0, stdout: `${expected}\n` })
    expect(await run(project, runtime, ["required.cjs"])).toMatchObject(
      version === "20.0.0" ? { code: 1 } : loaded
    )
  },
  120_000
)

it("Deno imports and runs the packed client with only the permission to connect, and requires it with only the permission to read", async () => {
  const deno = findTool("@deno/*/deno")
  write(
    "deno.js",
    'import { start } from "./program.js"\nconsole.log(await start(JSON.parse(Deno.args[0])))\n'
  )
  const env = { DENO_NO_UPDATE_CHECK: "1", DENO_DIR: join(project, ".deno") }
  const flags = ["run", "--no-prompt", "--cached-only"]
  const net = `--allow-net=${new URL(api.service().url).host}`
  const imported = await run(project, deno, [...flags, net, "deno.js", parameters], env)
  expect(imported).toMatchObject({ code: 0, stdout: `${expected}\n` })
  expect(await run(project, deno, [...flags, "--allow-read", "required.cjs"], env)).toMatchObject(loaded)
})

it("Cloudflare's workerd runs the packed client", async () => {
  const contents =
    'import { start } from "./program.js"\nexport default { fetch: async (request) => new Response(await start(await request.json())) }'
  await build({
    stdin: { contents, resolveDir: project },
    bundle: true,
    format: "esm",
    conditions: ["workerd", "worker"],
    outfile: join(project, "worker.js")
  })
  const port = await freePort()
  write(
    "workerd.capnp",
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
  expect([response.status, await response.text()]).toEqual([200, expected])
})

it("Chromium runs the packed client in a script that esbuild builds", async () => {
  const { outputFiles } = await build({
    entryPoints: [join(project, "program.js")],
    bundle: true,
    platform: "browser",
    format: "iife",
    globalName: "Program",
    write: false
  })
  const context = await resources.acquire(openBrowser)
  const page = await context.newPage()
  // The service sends no CORS headers, so the page must have the same origin as the service.
  await page.goto(`${api.service().url}/healthz`)
  const script = `(async () => { ${outputFiles[0]!.text}; return Program.start(${parameters}) })()`
  expect(await page.evaluate(script)).toBe(expected)
})
