import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, it, onTestFinished } from "vitest"
import { FakeService } from "../src/testing.ts"
import { type Handler, serveFake } from "./serveFake.ts"

const client = pathToFileURL(join(import.meta.dirname, "../src/index.ts")).href

type Fault = Handler<boolean>

/**
 * Runs a program that prints the failures of its requests. Returns what it prints until it exits by itself. The service
 * does not respond to requests after the first, or responds as `fault` says.
 */
const run = async (source: string, fault: Fault = () => true) => {
  const service = new FakeService({ prompts: [{ name: "p", content: "Text" }] })
  let requests = 0
  const server = await serveFake(service, (...exchange) => ++requests > 1 && fault(...exchange))
  onTestFinished(server.close)
  const program = `
    import { setTimeout } from "node:timers/promises"
    import { PromptClient } from "${client}"
    const client = new PromptClient({
      apiKey: "k",
      baseUrl: "${server.url}",
      cache: { ttl: 60_000 },
      logger: { warn: (message) => console.log(message) }
    })
    ${source}
    await setTimeout(500)
  `
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  onTestFinished(() => void child.kill())
  let stdout = ""
  child.stdout.on("data", (chunk) => (stdout += chunk))
  const [code] = await once(child, "close")
  return { code, stdout }
}

const refresh = `
  const { prompts } = client.withOptions({ cache: { ttl: 0 } })
  for (const _ of [1, 2]) console.log((await prompts.getResolved("p")).source)
`
const live = `
  await client.live({})
  console.log((await client.prompts.getResolved("p")).source)
`

it.each<[name: string, source: string, fault: Fault | undefined, stdout: RegExp]>([
  ["a background refresh gets no response", refresh, undefined, /^fresh\nstale\n$/],
  [
    "a background refresh waits for its retry",
    refresh,
    (_, response) => {
      response.writeHead(503, { "retry-after": "5" }).end()
      return true
    },
    /^fresh\nstale\nGET \/api\/v1\/prompts\/p\/resolved 503\n$/
  ],
  ["live prompts wait for a change", live, undefined, /^live\n$/],
  [
    "live prompts pause after a failure",
    live,
    (request) => {
      request.socket.destroy()
      return true
    },
    /GET \/api\/v1\/resolved without a response/
  ]
])("a program exits while %s", async (_, source, fault, stdout) => {
  expect(await run(source, fault)).toEqual({ code: 0, stdout: expect.stringMatching(stdout) })
})

it("a call keeps its program running while it waits for its retry", async () => {
  const source = `
    await client.prompts.get("p")
    console.log((await client.prompts.getResolved("p", { timeout: 3_000 })).source)
  `
  let failures = 0
  const { stdout } = await run(source, (_, response) => {
    if (failures++) return false
    response.writeHead(503, { "retry-after": "1" }).end()
    return true
  })
  expect(stdout).toMatch(/\nfresh\n$/)
})
