import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, it, onTestFinished } from "vitest"
import { FakeService } from "../src/testing.ts"
import { serveFake } from "./serveFake.ts"

const client = pathToFileURL(join(import.meta.dirname, "../src/index.ts")).href

/**
 * Runs a program that prints the failures of its requests. Returns what it prints until it exits by itself, and the
 * number of requests that it sends. The service does not respond to the second request, or responds as `fault` says.
 */
const run = async (source: string, fault: Parameters<typeof serveFake>[1] = () => true) => {
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
  return { code, stdout, requests }
}

const refresh = `
  const { prompts } = client.withOptions({ cache: { ttl: 0 } })
  for (const _ of [1, 2]) console.log((await prompts.getResolved("p")).source)
`
const live = `
  await client.live({})
  console.log((await client.prompts.getResolved("p")).source)
`

it("a program exits while a background refresh gets no response", async () => {
  expect(await run(refresh)).toEqual({ code: 0, stdout: "fresh\nstale\n", requests: 2 })
})

it("a program exits while a background refresh waits for its retry", async () => {
  const result = await run(refresh, (_, response) => {
    response.writeHead(503, { "retry-after": "5" }).end()
    return true
  })
  expect(result).toEqual({
    code: 0,
    stdout: "fresh\nstale\nGET /api/v1/prompts/p/resolved 503\n",
    requests: 2
  })
})

it("a program exits while live prompts wait for a change", async () => {
  expect(await run(live)).toEqual({ code: 0, stdout: "live\n", requests: 2 })
})

it("a program exits while live prompts pause after a failure", async () => {
  const result = await run(live, (request) => {
    request.socket.destroy()
    return true
  })
  expect(result).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/GET \/api\/v1\/resolved without a response/)
  })
})

it("a call keeps its program running while it waits for its retry", async () => {
  const first = `
    await client.prompts.get("p")
    const { source } = await client.prompts.getResolved("p", { timeout: 3_000 })
    console.log(source)
  `
  let failures = 0
  const result = await run(first, (_, response) => {
    if (failures++) return false
    response.writeHead(503, { "retry-after": "1" }).end()
    return true
  })
  expect(result.stdout).toMatch(/\nfresh\n$/)
})
