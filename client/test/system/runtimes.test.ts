import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import { afterAll, beforeAll, expect, it } from "vitest"
import { startDemoApi } from "../../../test/api/startApi.ts"
import { makeResources } from "../../../test/support/makeResources.ts"
import { freePort } from "../../../test/support/network/ports.ts"
import { openBrowser } from "../../../test/support/programs/browser.ts"
import { install, installNode, makeProject, pack, run } from "../../../test/support/programs/packages.ts"
import { runProgram } from "../../../test/support/programs/startProgram.ts"
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

/** A project in which the packed client is installed, with the bundle that the client's command pull has written. */
let project: string
let pulled: Awaited<ReturnType<typeof run>>
/** The expression that calls the program. */
let call: string
const write = (name: string, text: string) => writeFileSync(join(project, name), text)
const resources = makeResources()
afterAll(resources.release)
beforeAll(async () => {
  project = makeProject("runtimes")
  await install(project, await pack(client))
  write("program.js", program)
  write("required.cjs", required)
  const baseUrl = api.service().url
  const env = { PROMPT_RETRIEVAL_KEY: api.key, PROMPT_RETRIEVAL_URL: baseUrl }
  pulled = await run(project, "npx", ["--offline", "--no", "@prompt-retrieval/client", "pull"], env)
  const bundle = JSON.parse(readFileSync(join(project, "prompts.bundle.json"), "utf8"))
  call = `start(${JSON.stringify({ apiKey: api.key, baseUrl, id: agent.id, bundle })})`
  write("entry.js", `import { start } from "./program.js"\nconsole.log(await ${call})\n`)
}, 120_000)

it("npx --no @prompt-retrieval/client pull writes a bundle that pull --frozen accepts on the lowest supported version of Node", async () => {
  expect(pulled).toMatchObject({ code: 0, stdout: "6 prompts: prompts.bundle.json and prompts.ts changed\n" })
  const main = "node_modules/@prompt-retrieval/client/dist/pull/main.js"
  const frozen = await run(project, await installNode("20.0.0"), [main, "pull", "--frozen"])
  expect(frozen).toEqual({ code: 0, stdout: "", stderr: "" })
})

it.each<[runtime: string, find: () => string | Promise<string>, flags?: ReadonlyArray<string>]>([
  ["Node 20.0.0", () => installNode("20.0.0")],
  ["Node 22.19.0", () => installNode("22.19.0")],
  ["Node 24.0.0", () => installNode("24.0.0")],
  ["Node 26.10.0", () => installNode("26.10.0")],
  ["Bun", () => findTool("@oven/bun-*/bin/bun")],
  [
    "Deno without the permission to read environment variables",
    () => findTool("@deno/*/deno"),
    ["run", "--no-prompt", "--cached-only", "--allow-net", "--allow-read"]
  ]
])(
  "%s runs the packed client with import, and with require() unless the runtime cannot require() ES modules",
  async (runtime, find, flags = []) => {
    const command = await find()
    const env = { DENO_NO_UPDATE_CHECK: "1", DENO_DIR: join(project, ".deno") }
    const runFile = (file: string) => run(project, command, [...flags, file], env)
    expect(await runFile("entry.js")).toMatchObject({ code: 0, stdout: `${expected}\n` })
    expect(await runFile("required.cjs")).toMatchObject(runtime === "Node 20.0.0" ? { code: 1 } : loaded)
  },
  120_000
)

it("Cloudflare's workerd runs the packed client", async () => {
  const contents = `import { start } from "./program.js"
export default { fetch: async () => new Response(await ${call}) }`
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
  const response = await fetch(`http://127.0.0.1:${port}`)
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
  const script = `(async () => { ${outputFiles[0]!.text}; return Program.${call} })()`
  expect(await page.evaluate(script)).toBe(expected)
})
