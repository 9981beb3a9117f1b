import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { dirname, join } from "node:path"
import { text } from "node:stream/consumers"
import { beforeAll, expect, it } from "vitest"
import { PromptType } from "../../../src/domain/Prompt.ts"
import { startApi } from "../../api/startApi.ts"
import { readCodeBlocks, readTable, root } from "../../docs/markdown.ts"
import { makeTenant, prompt } from "../../support/archives.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { listenOnFreePort } from "../../support/network/ports.ts"
import { bin, makeLinkedProject, run } from "../../support/programs/packages.ts"
import { findTool } from "../../support/programs/tools.ts"

const document = "docs/models.md"
/** A text with braces and other characters that template languages interpret. */
const braces = '{x} {{y}} {"a": {}} }} {{ {{{w}}} <%= z %> {% if %} $& \\n "é" 🙂\n'
const content = `Reply in {language} as {"shop": "{{shop}}"}.`
const filled = content.replace("{{shop}}", () => braces)

const { key, archive } = makeTenant({
  prompts: [prompt({ title: "Support agent", current_content: content, target_model: "model-1" })]
})
const api = startApi([archive])

const reply = { type: "text", text: "On its way" }
const output = {
  id: "1",
  type: "message",
  role: "assistant",
  content: [{ ...reply, type: "output_text", annotations: [] }]
}

/** The responses of a model, by path. */
const responses: Readonly<Record<string, object>> = {
  "/v1/responses": { object: "response", output: [output], usage: { input_tokens: 1, output_tokens: 1 } },
  "/v1/messages": { content: [reply] },
  "/v1/chat/completions": { choices: [{ message: { role: "assistant", content: reply.text } }] }
}

/** Prints the attributes of the active span, and of each span that starts. */
const printAttributes = `import { context, ROOT_CONTEXT, trace } from "@opentelemetry/api"
const print = (attributes) => console.log(JSON.stringify(attributes))
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

/** The first block of the document, which all other examples continue. */
const [beginning, ...examples] = readCodeBlocks(document).map(({ code }) => code)

/** Makes modules from the calls in the table "Traces" of the document. */
const tracers: Readonly<Record<string, (call: string) => string>> = {
  OpenTelemetry: (call) => `import { trace } from "@opentelemetry/api"\n${call}\n`,
  Langfuse: (call) => `import { updateActiveObservation } from "@langfuse/tracing"\n${call}\n`,
  Datadog: (call) => `import tracer from "dd-trace"
const { llmobs } = tracer.init({ llmobs: { mlApp: "shop" } })
await llmobs.trace({ kind: "workflow", name: "answer" }, async () => { ${call} })
`
}
const calls = readTable(document, "Traces").flatMap(([tracer, call]) =>
  Object.hasOwn(tracers, tracer!) ? [tracers[tracer!]!(/`(.+?)`/.exec(call!)![1]!)] : []
)

/** The modules by the package that each of them uses first. */
const modules = new Map(
  [...examples, ...calls].map((code) => [/from "(.+)"/.exec(code)![1]!, `${beginning}\n${code}`])
)
const toFile = (name: string) => `example${name.replaceAll(/\W/g, "-")}.mts`

const packages = new Set(
  [...modules.values()]
    .flatMap((code) => [...code.matchAll(/ from "((@[^"/]+\/)?[^"/]+)/g)].map(([, name]) => name!))
    .filter((name) => name !== "@prompt-retrieval/client")
)

const acquire = makeAcquire()
const requests: Array<{ readonly path: string; readonly body: unknown }> = []
let project: string
let modelUrl: string

beforeAll(async () => {
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if (request.headers["content-type"] === "application/json")
      requests.push({ path: request.url!, body: JSON.parse(body) })
    response.setHeader("content-type", "application/json").end(JSON.stringify(responses[request.url!] ?? {}))
  })
  modelUrl = `http://127.0.0.1:${await acquire(listenOnFreePort(server))}`
  project = makeLinkedProject("models")
  for (const name of packages) {
    const link = join(project, "node_modules", name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(findTool(name), link)
  }
  for (const [name, code] of modules)
    writeFileSync(
      join(project, toFile(name)),
      code.replaceAll('"Acme"', () => JSON.stringify(braces))
    )
  writeFileSync(join(project, "printAttributes.mjs"), printAttributes)
})

/** Runs a module. Returns its output, and the requests that the model received. */
const runModule = async (name: string) => {
  requests.length = 0
  const args = ["--import", "./printAttributes.mjs", toFile(name)]
  const { code, stdout, stderr } = await run(project, process.execPath, args, {
    PROMPT_RETRIEVAL_URL: api.service().url,
    PROMPT_RETRIEVAL_KEY: key.plaintext,
    OPENAI_BASE_URL: `${modelUrl}/v1`,
    OPENAI_API_KEY: "test",
    ANTHROPIC_BASE_URL: modelUrl,
    ANTHROPIC_API_KEY: "test"
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  return { stdout, requests: [...requests] }
}

it("the examples of docs/models.md type-check with the packages of the providers", async () => {
  const files = [...modules.keys()].map(toFile)
  const compilerOptions = { noUnusedLocals: false }
  const config = { extends: join(root, "tsconfig.json"), compilerOptions, files, include: [] }
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config))
  expect(await run(project, bin("tsc"), ["-p", "."])).toEqual({ code: 0, stdout: "", stderr: "" })
})

const question = "Where is my parcel?"
const user = { role: "user", content: question }
const system = { role: "system", content: filled }
const userInput = { role: "user", content: [{ type: "input_text", text: question }] }

it.each([
  { name: "openai", path: "/v1/responses", body: { instructions: filled, input: question } },
  { name: "@anthropic-ai/sdk", path: "/v1/messages", body: { system: filled, messages: [user] } },
  { name: "@ai-sdk/openai", path: "/v1/responses", body: { input: [system, userInput] } },
  { name: "@langchain/core/messages", path: "/v1/chat/completions", body: { messages: [system, user] } }
])(
  "the example with $name in docs/models.md sends the filled text to the target model without changes, and prints the response",
  async ({ name, path, body }) => {
    const { stdout, requests } = await runModule(name)
    expect(requests).toEqual([{ path, body: expect.objectContaining({ model: "model-1", ...body }) }])
    expect(stdout).toContain(reply.text)
  }
)

it.each([
  ["@opentelemetry/api", ""],
  ["@ai-sdk/openai", "ai.settings.context.prompt."],
  ["@langfuse/tracing", "langfuse.observation.metadata."]
])("the call with %s in docs/models.md records the attributes of the prompt", async (name, prefix) => {
  const { stdout } = await runModule(name)
  expect(stdout).toContain(
    `"${prefix}gen_ai.prompt.name":"support-agent","${prefix}gen_ai.prompt.version":"1"`
  )
})

it("docs/models.md states for every type of prompt in which part of a model request its text belongs", () => {
  const types = readTable(document, "Send a prompt to a model").flatMap(([types]) =>
    [...types!.matchAll(/`(.+?)`/g)].map(({ 1: type }) => type!)
  )
  expect(types.toSorted()).toEqual([...PromptType.literals].toSorted())
})
