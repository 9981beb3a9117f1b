import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { dirname, join } from "node:path"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { PromptType } from "../../../src/domain/Prompt.ts"
import { startApi } from "../../api/startApi.ts"
import { readModules, readTable, root } from "../../docs/markdown.ts"
import { makeTenant, prompt } from "../../support/archives.ts"
import { makeResources } from "../../support/database.ts"
import { listenOnFreePort } from "../../support/ports.ts"
import { bin, makeLinkedProject, run } from "../../support/programs/packages.ts"
import { findTool } from "../../support/programs/tools.ts"

const document = "docs/models.md"
const packages = [
  "@ai-sdk/openai",
  "@ai-sdk/otel",
  "@anthropic-ai/sdk",
  "@langchain/core",
  "@langchain/openai",
  "@langfuse/tracing",
  "@opentelemetry/api",
  "ai",
  "dd-trace",
  "openai"
]

/** Template languages give these braces a meaning. */
const braces = '{x} {{y}} {"a": {}} }} {{ {{{w}}} <%= z %> {% if %} $& \\n "é" 🙂\n'
const content = `Reply in {language} as {"shop": "{{shop}}"}.`
const filled = content.replace("{{shop}}", () => braces)

const { key, archive } = makeTenant({
  prompts: [prompt({ title: "Support agent", current_content: content, target_model: "model-1" })]
})
const api = startApi([archive])

const reply = { type: "text", text: "On its way" }

/** The responses of a model, and of the agent of Datadog, by path. */
const responses: Readonly<Record<string, object>> = {
  "/v1/responses": {
    object: "response",
    output: [
      {
        id: "1",
        type: "message",
        role: "assistant",
        content: [{ ...reply, type: "output_text", annotations: [] }]
      }
    ],
    usage: { input_tokens: 1, output_tokens: 1 }
  },
  "/v1/messages": { content: [reply] },
  "/v1/chat/completions": { choices: [{ message: { role: "assistant", content: reply.text } }] },
  "/info": { endpoints: ["/evp_proxy/v2/"] }
}

/** Prints the attributes of the active span, and of each span that starts, as one line of JSON. */
const printAttributes = `import { context, ROOT_CONTEXT, trace } from "@opentelemetry/api"
const print = (attributes) => console.log(JSON.stringify({ attributes }))
const makeSpan = () => {
  const span = trace.wrapSpanContext({ traceId: "1".repeat(32), spanId: "1".repeat(16), traceFlags: 1 })
  span.setAttributes = (attributes) => (print(attributes), span)
  return span
}
const startSpan = (_name, { attributes } = {}) => (print(attributes), makeSpan())
trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) })
const active = trace.setSpan(ROOT_CONTEXT, makeSpan())
context.setGlobalContextManager({
  active: () => active,
  with: (_context, run, self, ...parameters) => run.apply(self, parameters),
  bind: (_context, target) => target
})
`

const sections = [
  "OpenAI Responses",
  "Anthropic Messages",
  "AI SDK 7",
  "LangChain JS",
  "fetch",
  "OpenTelemetry",
  "AI SDK 7 in traces",
  "Langfuse",
  "Datadog"
]
const files = sections.map((section) => `${section.replaceAll(" ", "-")}.mts`)

describe(document, () => {
  const resources = makeResources()
  const requests: Array<{ readonly path: string; readonly body: unknown }> = []
  let project: string
  let modelUrl: string

  beforeAll(async () => {
    const server = createServer(async (request, response) => {
      const body = await text(request)
      if (request.headers["content-type"] === "application/json")
        requests.push({ path: request.url!, body: JSON.parse(body) })
      response
        .setHeader("content-type", "application/json")
        .end(JSON.stringify(responses[request.url!] ?? {}))
    })
    modelUrl = `http://127.0.0.1:${await resources.acquire(listenOnFreePort(server))}`
    project = makeLinkedProject("models")
    for (const name of packages) {
      const link = join(project, "node_modules", name)
      mkdirSync(dirname(link), { recursive: true })
      symlinkSync(findTool(name), link)
    }
    const modules = readModules(document)
    expect(modules).toHaveLength(files.length)
    files.forEach((file, index) => {
      writeFileSync(
        join(project, file),
        modules[index]!.code.replaceAll('"Acme"', () => JSON.stringify(braces))
      )
    })
    writeFileSync(join(project, "printAttributes.mjs"), printAttributes)
  })
  afterAll(() => resources.release())

  /** Runs the example of a section. Returns its output and the requests that the model received. */
  const runExample = async (section: string) => {
    requests.length = 0
    const file = files[sections.indexOf(section)]!
    const result = await run(project, process.execPath, ["--import", "./printAttributes.mjs", file], {
      PROMPT_RETRIEVAL_URL: api.service().url,
      PROMPT_RETRIEVAL_KEY: key.plaintext,
      OPENAI_BASE_URL: `${modelUrl}/v1`,
      OPENAI_API_KEY: "test",
      ANTHROPIC_BASE_URL: modelUrl,
      ANTHROPIC_API_KEY: "test",
      DD_TRACE_AGENT_URL: modelUrl,
      DD_TRACE_STARTUP_LOGS: "false",
      DD_INSTRUMENTATION_TELEMETRY_ENABLED: "false",
      DD_REMOTE_CONFIGURATION_ENABLED: "false"
    })
    expect(result).toMatchObject({ code: 0, stderr: "" })
    return { stdout: result.stdout, requests: [...requests] }
  }

  it("the examples of docs/models.md type-check with the packages of the providers", async () => {
    const config = { extends: join(root, "tsconfig.json"), files, include: [] }
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config))
    expect(await run(project, bin("tsc"), ["-p", "."])).toEqual({ code: 0, stdout: "", stderr: "" })
  })

  const question = "Where is my parcel?"
  const user = { role: "user", content: question }
  const system = { role: "system", content: filled }
  const userInput = { role: "user", content: [{ type: "input_text", text: question }] }

  it.each([
    { section: "OpenAI Responses", path: "/v1/responses", body: { instructions: filled, input: question } },
    { section: "Anthropic Messages", path: "/v1/messages", body: { system: filled, messages: [user] } },
    { section: "AI SDK 7", path: "/v1/responses", body: { input: [system, userInput] } },
    { section: "LangChain JS", path: "/v1/chat/completions", body: { messages: [system, user] } },
    { section: "fetch", path: "/v1/chat/completions", body: { messages: [system, user] } }
  ])(
    "the example for $section in docs/models.md sends the filled text with all its braces to the target model, and prints the response",
    async ({ section, path, body }) => {
      const { stdout, requests } = await runExample(section)
      expect(requests).toEqual([{ path, body: expect.objectContaining({ model: "model-1", ...body }) }])
      expect(stdout).toContain(reply.text)
    }
  )

  const attributes = {
    "gen_ai.prompt.name": "support-agent",
    "gen_ai.prompt.version": "1",
    "prompt_retrieval.prompt.id": archive.prompts[0]!.id,
    "prompt_retrieval.prompt.etag": expect.stringMatching(/^"/),
    "prompt_retrieval.prompt.source": "fresh",
    "prompt_retrieval.prompt.age_ms": expect.toSatisfy((age) => Number(age) >= 0),
    "prompt_retrieval.prompt.request_id": expect.any(String)
  }
  const addPrefix = (prefix: string) =>
    Object.fromEntries(Object.entries(attributes).map(([name, value]) => [prefix + name, value]))

  it.each([
    { section: "OpenTelemetry", prefix: "" },
    { section: "AI SDK 7 in traces", prefix: "ai.settings.context.prompt." },
    { section: "Langfuse", prefix: "langfuse.observation.metadata." }
  ])(
    "the example for $section in docs/models.md records the documented attributes",
    async ({ section, prefix }) => {
      const { stdout } = await runExample(section)
      const printed = stdout.split("\n").filter((line) => line.startsWith('{"attributes"'))
      expect(printed.map((line) => JSON.parse(line).attributes)).toContainEqual(
        expect.objectContaining(addPrefix(prefix))
      )
    }
  )

  it("the example for Datadog in docs/models.md sends the documented attributes as metadata to the agent", async () => {
    const { requests } = await runExample("Datadog")
    const [spans] = requests.filter(({ path }) => path.endsWith("/llmobs"))
    expect(spans!.body).toMatchObject([{ spans: [{ name: "answer", meta: { metadata: attributes } }] }])
  })

  it("docs/models.md states for every type of prompt what its text becomes", () => {
    const types = readTable(document, "What a prompt becomes").flatMap(([types]) =>
      [...types!.matchAll(/`(.+?)`/g)].map(({ 1: type }) => type!)
    )
    expect(types.toSorted()).toEqual([...PromptType.literals].toSorted())
  })
})
