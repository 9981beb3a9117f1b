import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, readdirSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import * as Result from "effect/Result"
import { beforeAll, describe, expect, it } from "vitest"
import { getSource } from "../../src/adapters/outbound/memory/MemoryPromptRepo.ts"
import { resolve } from "../../src/domain/Resolution.ts"
import { makeDemoTenant } from "../api/startApi.ts"
import { makeLinkedProject, run } from "../support/programs/packages.ts"
import { freePort } from "../support/ports.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"

const examples = join(import.meta.dirname, "../../examples")

const { archive, key } = makeDemoTenant()
const agent = archive.prompts.find(({ title }) => title === "Support agent")!
const path = `/api/v1/prompts/${agent.id}/resolved`
const resolved = Result.getOrThrow(resolve(getSource(archive, agent)))

const servers = ["express.ts", "fastify.ts", "node-http.ts"]
const modules = ["hono.ts", "route-handler.ts"]
const programs = ["effect-program.ts", "in-process.ts", "litellm.ts", "resolve.ts"]
const tests = ["memory-testing.ts", "own-store.ts", "properties.ts"]

/** A project that contains all examples. Its imports of this repository's packages resolve to their sources. */
let project: string
beforeAll(() => {
  project = makeLinkedProject("embedding-examples", ["express", "fastify", "hono"])
  cpSync(examples, project, { recursive: true })
})

const runNode = (args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) =>
  run(project, process.execPath, args, env)

/**
 * Sends bytes to a local port, and then ends its half of the connection or resets the connection. Returns the received
 * text.
 */
const sendRaw = async (port: number, bytes: string, ending: "end" | "reset"): Promise<string> => {
  const socket = connect(port, "127.0.0.1")
  let received = ""
  socket.setEncoding("latin1").on("data", (chunk) => (received += chunk))
  socket.on("error", () => {})
  await once(socket, "connect")
  if (ending === "reset") socket.write(bytes, "latin1", () => socket.resetAndDestroy())
  else socket.end(bytes, "latin1")
  await once(socket, "close")
  return received
}

it("test/embedding/examples.test.ts runs every example that does not use the client", () => {
  expect(readdirSync(examples).filter((name) => name.endsWith(".ts") && !name.startsWith("client"))).toEqual(
    [...servers, ...modules, ...programs, ...tests].toSorted()
  )
})

describe("the examples that need PostgreSQL", () => {
  const { env } = makeTestDatabase([archive])
  const headers = { authorization: `Bearer ${key}` }
  const startExample = (example: string, port: number) =>
    spawn(process.execPath, [example], {
      cwd: project,
      env: { ...env, PATH: process.env.PATH, PORT: String(port) },
      stdio: ["ignore", "pipe", "inherit"]
    })

  it.each(servers)(
    "%s serves the API next to the pages of the application and survives malformed requests",
    async (example) => {
      const port = await freePort()
      const child = startExample(example, port)
      const origin = `http://127.0.0.1:${port}`
      const send = async (path: string, init: RequestInit = {}) => {
        const response = await fetch(origin + path, { headers, ...init })
        return { status: response.status, etag: response.headers.get("etag"), body: await response.text() }
      }
      try {
        await once(child.stdout, "data")
        const { status, etag, body } = await send(path)
        expect([status, JSON.parse(body)]).toEqual([200, { data: resolved }])
        const conditional = { headers: { ...headers, "if-none-match": etag! } }
        expect(await send(path, conditional)).toEqual({ status: 304, etag, body: "" })
        expect(await send(path, { method: "HEAD" })).toEqual({ status: 200, etag, body: "" })
        expect((await send(path, { headers: {} })).status).toBe(401)
        expect((await send("/")).body).toBe("a page of the application\n")
        expect((await send("/elsewhere")).status).toBe(404)

        const sendLine = (line: string, ending: "end" | "reset" = "end") =>
          sendRaw(
            port,
            `${line} HTTP/1.1\r\nHost: a\r\nX-A: \xff\r\nUpgrade: x\r\nConnection: close, upgrade\r\n\r\n`,
            ending
          )
        for (const target of [
          "/api/v1/../../docs",
          "/api/v1/%2e%2e/..%2f../docs",
          "/api/v1/..\\..\\docs",
          "/api/v1/../../healthz?/api/v1/"
        ])
          expect(await sendLine(`GET ${target}`), target).toMatch(/^HTTP\/1\.1 404 /)
        expect(await sendLine(`TRACE ${path}`)).toMatch(/^HTTP\/1\.1 405 .*\r\nallow: GET, HEAD\r\n/is)
        for (const line of [
          ...[`TRACE ${path}`, "CONNECT a:1", "CONNECT /api/v1/prompts", "OPTIONS *", "nonsense"],
          ...["GET http://[/api/v1/", "GET //api/v1/prompts", "GET /api/v1//[::/../..//%ff%00"]
        ])
          for (const ending of ["end", "reset"] as const) await sendLine(line, ending)
        expect((await send(path)).status).toBe(200)
      } finally {
        child.kill("SIGTERM")
        expect(await once(child, "exit")).toEqual([0, null])
      }
    }
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
  ])("%s serves the API and a page of the application", async (_, start, page) => {
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

  it("litellm.ts serves a prompt as a message with slots of LiteLLM, and the errors of the API", async () => {
    const port = await freePort()
    const child = startExample("litellm.ts", port)
    const endpoint = `http://127.0.0.1:${port}/beta/litellm_prompt_management`
    try {
      await once(child.stdout, "data")
      const response = await fetch(`${endpoint}?prompt_id=support-agent&project_name=x`, { headers })
      expect(await response.json()).toEqual({
        prompt_id: "support-agent",
        prompt_template: [
          { role: "system", content: resolved.resolved_content.replace("{{shop}}", "{shop}") }
        ],
        prompt_template_model: agent.target_model
      })
      const sendFor = async (query: string, init: RequestInit) => (await fetch(endpoint + query, init)).status
      expect(await sendFor("?prompt_id=support-agent", {})).toBe(401)
      expect(await sendFor("?prompt_id=../../../../docs%3F", { headers })).toBe(404)
      expect(await sendFor("", { headers })).toBe(404)
      expect(await sendFor("?prompt_id=support-agent", { headers, method: "POST" })).toBe(404)
      for (const target of ["//", "http://[/", "*", "/beta/litellm_prompt_management?prompt_id=%ff%00"]) {
        expect(
          await sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`, "end")
        ).toMatch(/^HTTP\/1\.1 4/)
      }
    } finally {
      child.kill("SIGTERM")
      expect(await once(child, "exit")).toEqual([0, null])
    }
  })

  it.each([
    ["in-process.ts", "Support agent 3\n3\nNOT_FOUND Version not found\n"],
    ["effect-program.ts", "Support agent 3\n/readyz 200\n"],
    ["resolve.ts", "Greet {{customer}}.\n\nBe brief.\n"]
  ])("%s prints what its comments say", async (example, stdout) => {
    expect(await runNode([example], env)).toEqual({ code: 0, stdout, stderr: "" })
  })
})

it.each(tests)("the tests in %s pass", async (example) => {
  const { code, stdout, stderr } = await runNode(["--test", "--test-reporter=spec", example])
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  const [, count] = /ℹ tests (\d+)\n/.exec(stdout)!
  expect(Number(count)).toBeGreaterThan(1)
  expect(stdout).toContain(`ℹ pass ${count}\n`)
})
