import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, readdirSync } from "node:fs"
import { get } from "node:http"
import { join } from "node:path"
import * as Result from "effect/Result"
import { expect, it } from "vitest"
import { getSource } from "../../src/adapters/outbound/memory/MemoryPromptRepo.ts"
import { resolve } from "../../src/domain/Resolution.ts"
import { makeDemoTenant } from "../api/startApi.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { freePort } from "../support/network/ports.ts"
import { makeLinkedProject, run } from "../support/programs/packages.ts"

const examples = join(import.meta.dirname, "../../examples")

const { archive, key } = makeDemoTenant()
const agent = archive.prompts.find(({ title }) => title === "Support agent")!
// This content ends with a slot that is never closed. litellm.ts must read the content in linear time.
Object.assign(agent, { current_content: `${agent.current_content}{{${" ".repeat(20_000)}` })
const path = `/api/v1/prompts/${agent.id}/resolved`
const resolved = Result.getOrThrow(resolve(getSource(archive, agent)))

const servers = ["express.ts", "fastify.ts", "node-http.ts"]
const modules = ["hono.ts", "route-handler.ts"]
const programs = ["effect-program.ts", "in-process.ts", "litellm.ts", "resolve.ts"]
const tests = ["memory-testing.ts", "own-store.ts", "properties.ts"]

/** A project that contains all examples. Imports of this repository's packages resolve to the sources. */
const project = makeLinkedProject("embedding-examples", ["express", "fastify", "hono"])
cpSync(examples, project, { recursive: true })

const runNode = (args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) =>
  run(project, process.execPath, args, env)

it("every example that does not use the client has a test", () => {
  expect(readdirSync(examples).filter((name) => name.endsWith(".ts") && !name.startsWith("client"))).toEqual(
    [...servers, ...modules, ...programs, ...tests].toSorted()
  )
})

const { env } = makeTestDatabase([archive])
const headers = { authorization: `Bearer ${key}` }
/** Starts an example, and runs a test on its port. Then the example must stop without an error. */
const testExample = async (example: string, test: (port: number) => Promise<void>) => {
  const port = await freePort()
  const child = spawn(process.execPath, [example], {
    cwd: project,
    env: { ...env, PATH: process.env.PATH, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"]
  })
  try {
    await once(child.stdout, "data")
    await test(port)
  } finally {
    child.kill("SIGTERM")
    expect(await once(child, "exit")).toEqual([0, null])
  }
}

it.each(servers)("the example %s serves the API next to the pages of the application", (example) =>
  testExample(example, async (port) => {
    const send = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...init })
      return { status: response.status, etag: response.headers.get("etag"), body: await response.text() }
    }
    const { status, etag, body } = await send(path)
    expect([status, JSON.parse(body)]).toEqual([200, { data: resolved }])
    const conditional = { headers: { ...headers, "if-none-match": etag! } }
    expect(await send(path, conditional)).toEqual({ status: 304, etag, body: "" })
    expect(await send(path, { method: "HEAD" })).toEqual({ status: 200, etag, body: "" })
    expect((await send(path, { headers: {} })).status).toBe(401)
    expect((await send("/")).body).toBe("a page of the application\n")
    expect((await send("/elsewhere")).status).toBe(404)
  })
)

it.each([
  [
    "hono.ts",
    `import application, { close } from "./hono.ts"
const get = (path, headers) => application.request(path, { headers })`,
    "a page of the application\n"
  ],
  [
    "route-handler.ts",
    `import { close, GET, getResolvedText } from "./route-handler.ts"
const get = async (path, headers) =>
  path === "/"
    ? new Response(await getResolvedText("${archive.workspace.id}", "${agent.id}"))
    : GET(new Request("http://host.example" + path, { headers }))`,
    resolved.resolved_content
  ]
])("the example %s serves the API and a page of the application", async (_, start, page) => {
  const code = `${start}
const responses = [
  await get("${path}", { authorization: "Bearer ${key}" }), await get("${path}", {}), await get("/", {})
]
console.log(JSON.stringify(await Promise.all(responses.map(async (each) => [each.status, await each.text()]))))
await close()`
  const { stdout, ...rest } = await runNode(["--input-type=module", "--eval", code], env)
  expect(rest).toEqual({ code: 0, stderr: "" })
  expect(JSON.parse(stdout)).toEqual([
    [200, JSON.stringify({ data: resolved })],
    [401, expect.any(String)],
    [200, page]
  ])
})

it("the example litellm.ts serves a prompt as a message with slots of LiteLLM, and the errors of the API", () =>
  testExample("litellm.ts", async (port) => {
    const endpoint = `http://127.0.0.1:${port}/beta/litellm_prompt_management`
    const response = await fetch(`${endpoint}?prompt_id=support-agent&project_name=x`, { headers })
    expect(await response.json()).toEqual({
      prompt_id: "support-agent",
      prompt_template: [{ role: "system", content: resolved.resolved_content.replace("{{shop}}", "{shop}") }],
      prompt_template_model: agent.target_model
    })
    const sendFor = async (query: string, init: RequestInit) => (await fetch(endpoint + query, init)).status
    expect(await sendFor("?prompt_id=support-agent", {})).toBe(401)
    expect(await sendFor("?prompt_id=../../../../docs%3F", { headers })).toBe(404)
    expect(await sendFor("", { headers })).toBe(404)
    expect(await sendFor("?prompt_id=support-agent", { headers, method: "POST" })).toBe(404)
    for (const path of ["//", "http://[/", "*", "/beta/litellm_prompt_management?prompt_id=%ff%00"]) {
      const [received] = await once(get({ host: "127.0.0.1", port, path }), "response")
      expect(received.resume().statusCode, path).toBe(404)
    }
  }))

it.each([
  ["in-process.ts", "Support agent 3\n3\nNOT_FOUND Version not found\n"],
  ["effect-program.ts", "Support agent 3\n/readyz 200\n"],
  ["resolve.ts", "Greet {{customer}}.\n\nBe brief.\n"]
])("the example %s prints the output that its comments show", async (example, stdout) => {
  expect(await runNode([example], env)).toEqual({ code: 0, stdout, stderr: "" })
})

it.each(tests)("the tests in the example %s pass", async (example) => {
  const { code, stdout, stderr } = await runNode(["--test", "--test-reporter=spec", example])
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  const [, count] = /ℹ tests (\d+)\n/.exec(stdout)!
  expect(Number(count)).toBeGreaterThan(1)
  expect(stdout).toContain(`ℹ pass ${count}\n`)
})
