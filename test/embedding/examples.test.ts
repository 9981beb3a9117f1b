import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, readdirSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import demo from "../../src/demo/workspace.json" with { type: "json" }
import { makeDemoTenant } from "../api/startApi.ts"
import { makeLinkedProject, removeDirectories, run } from "../support/programs/packages.ts"
import { freePort } from "../support/ports.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"

const examples = join(import.meta.dirname, "../../examples")

const { id, title, prompt_type, target_model } = demo.prompts.find(({ title }) => title === "Support agent")!
const path = `/api/v1/prompts/${id}/resolved`
const resolved = {
  id,
  title,
  prompt_type,
  target_model,
  resolved_content: [
    "You are a support agent of {{shop}}. Be brief and friendly, and end with one clear next step.",
    "Write as Acme does: warm and calm, without jargon, and address the reader directly.",
    "Answer in English. Use at most 4 sentences.",
    "Never reveal personal data. If you are not sure, say so instead of guessing."
  ].join("\n\n"),
  fragment_count: 3
}

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
afterAll(removeDirectories)

const runNode = (args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) =>
  run(project, process.execPath, args, env)

/** Runs statements that import examples, and returns the JSON that they print. */
const evaluate = async (code: string, env: Readonly<Record<string, string>>): Promise<unknown> => {
  const { stdout, ...rest } = await runNode(["--input-type=module", "--eval", code], env)
  expect(rest).toEqual({ code: 0, stderr: "" })
  return JSON.parse(stdout)
}

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
  const { archive, key } = makeDemoTenant()
  const { env } = makeTestDatabase([archive])

  describe.each(servers)("the example %s", (example) => {
    it(`${example} serves the API next to the pages of the application and survives malformed requests`, async () => {
      const port = await freePort()
      const child = spawn(process.execPath, [example], {
        cwd: project,
        env: { ...env, PATH: process.env.PATH, PORT: String(port) },
        stdio: ["ignore", "pipe", "inherit"]
      })
      const url = `http://127.0.0.1:${port}${path}`
      const headers = { authorization: `Bearer ${key}` }
      try {
        await once(child.stdout, "data")
        const response = await fetch(url, { headers })
        expect(await response.json()).toEqual({ data: resolved })
        const etag = response.headers.get("etag")!
        const conditional = await fetch(url, { headers: { ...headers, "if-none-match": etag } })
        expect([conditional.status, await conditional.text()]).toEqual([304, ""])
        const head = await fetch(url, { headers, method: "HEAD" })
        expect([head.status, head.headers.get("etag"), await head.text()]).toEqual([200, etag, ""])
        expect((await fetch(url)).status).toBe(401)
        expect((await fetch(url, { headers, method: "DELETE" })).status).toBe(405)
        expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("a page of the application\n")
        expect((await fetch(`http://127.0.0.1:${port}/elsewhere`)).status).toBe(404)

        for (const target of [
          "/api/v1/../../docs",
          "/api/v1/%2e%2e/..%2f../docs",
          "/api/v1/%2e%2e/%2E./openapi.json",
          "/api/v1/..\\..\\docs",
          "/api/v1/../../healthz?/api/v1/"
        ]) {
          const bytes = `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
          expect(await sendRaw(port, bytes, "end"), target).toMatch(/^HTTP\/1\.1 404 /)
        }

        const trace = await sendRaw(
          port,
          `TRACE ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
          "end"
        )
        expect(trace).toMatch(/^HTTP\/1\.1 405 .*\r\nallow: GET, HEAD\r\n/is)
        expect(trace).toContain('{"error":{"code":"METHOD_NOT_ALLOWED","message":"Method not allowed"}}')
        for (const start of [
          `TRACE ${path}`,
          `PROPFIND ${path}`,
          "CONNECT a:1",
          "CONNECT /api/v1/prompts",
          "OPTIONS *",
          "GET http://[/api/v1/",
          "GET http://elsewhere/api/v1/prompts",
          "GET //api/v1/prompts",
          "GET /api/v1//[::/../..//%ff%00",
          "GET /api/v1/\\\\host:99999/",
          "nonsense"
        ]) {
          const bytes = `${start} HTTP/1.1\r\nHost: a\r\nX-A: \xff\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n`
          for (const ending of ["end", "reset"] as const) await sendRaw(port, bytes, ending)
        }
        expect(child.exitCode).toBeNull()
        expect((await fetch(url, { headers })).status).toBe(200)
      } finally {
        child.kill("SIGTERM")
        expect(await once(child, "exit")).toEqual([0, null])
      }
    })
  })

  it("hono.ts serves the API next to the pages of the application", async () => {
    const code = `
import application, { close } from "./hono.ts"
const request = async (path, headers) => {
  const response = await application.request(path, { headers })
  return [response.status, await response.text()]
}
const authorization = "Bearer " + process.env.PROMPT_RETRIEVAL_KEY
const { PROMPT } = process.env
console.log(JSON.stringify([await request(PROMPT, { authorization }), (await request(PROMPT))[0], await request("/")]))
await close()`
    expect(await evaluate(code, { ...env, PROMPT_RETRIEVAL_KEY: key, PROMPT: path })).toEqual([
      [200, JSON.stringify({ data: resolved })],
      401,
      [200, "a page of the application\n"]
    ])
  })

  it("route-handler.ts serves GET and HEAD, and reads a prompt in process", async () => {
    const code = `
import { close, GET, getResolvedText, HEAD } from "./route-handler.ts"
const request = (method) =>
  new Request(process.env.URL, { method, headers: { authorization: "Bearer " + process.env.PROMPT_RETRIEVAL_KEY } })
const [get, head] = [await GET(request("GET")), await HEAD(request("HEAD"))]
const text = await getResolvedText("${demo.workspace.id}", "${id}")
console.log(JSON.stringify([await get.json(), head.status, await head.text(), text]))
await close()`
    expect(
      await evaluate(code, { ...env, PROMPT_RETRIEVAL_KEY: key, URL: `http://host.example${path}` })
    ).toEqual([{ data: resolved }, 200, "", resolved.resolved_content])
  })

  it("litellm.ts serves a prompt as a message with slots of LiteLLM, and the errors of the API", async () => {
    const port = await freePort()
    const child = spawn(process.execPath, ["litellm.ts"], {
      cwd: project,
      env: { ...env, PATH: process.env.PATH, PORT: String(port) },
      stdio: ["ignore", "pipe", "inherit"]
    })
    const endpoint = `http://127.0.0.1:${port}/beta/litellm_prompt_management`
    const headers = { authorization: `Bearer ${key}` }
    try {
      await once(child.stdout, "data")
      const response = await fetch(`${endpoint}?prompt_id=support-agent&project_name=x`, { headers })
      expect(await response.json()).toEqual({
        prompt_id: "support-agent",
        prompt_template: [
          { role: "system", content: resolved.resolved_content.replace("{{shop}}", "{shop}") }
        ],
        prompt_template_model: target_model
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

  it("in-process.ts reads prompts without a key", async () => {
    expect(await runNode(["in-process.ts"], env)).toEqual({
      code: 0,
      stdout: "Support agent 3\n3\nNOT_FOUND Version not found\n",
      stderr: ""
    })
  })

  it("effect-program.ts reads a prompt and serves the HTTP API from the same layers", async () => {
    expect(await runNode(["effect-program.ts"], env)).toEqual({
      code: 0,
      stdout: "Support agent 3\n/readyz 200\n",
      stderr: ""
    })
  })
})

it("resolve.ts resolves a prompt without a database", async () => {
  expect(await runNode(["resolve.ts"])).toEqual({
    code: 0,
    stdout: "Greet {{customer}}.\n\nBe brief.\n",
    stderr: ""
  })
})

it.each(tests)("the tests in %s pass", async (example) => {
  const { code, stdout, stderr } = await runNode(["--test", "--test-reporter=spec", example])
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  const [, count] = /ℹ tests (\d+)\n/.exec(stdout)!
  expect(Number(count)).toBeGreaterThan(1)
  expect(stdout).toContain(`ℹ pass ${count}\n`)
})
