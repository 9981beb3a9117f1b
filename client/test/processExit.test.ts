import { execFile } from "node:child_process"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { FakeService } from "../src/testing.ts"
import { type Handler, serveFake } from "./serveFake.ts"

const client = pathToFileURL(join(import.meta.dirname, "../src/index.ts")).href

/** Returns the output of a program that must exit with 0. From the second request on, `fault` can respond. */
const run = async (source: string, fault: Handler<boolean>) => {
  const service = new FakeService({ prompts: [{ name: "p", content: "Text" }] })
  let requests = 0
  const url = await serveFake(service, (...exchange) => ++requests > 1 && fault(...exchange))
  const program = `
    import { setTimeout } from "node:timers/promises"
    import { PromptClient } from "${client}"
    const logger = { warn: (message) => console.log(message) }
    const client = new PromptClient({ apiKey: "k", baseUrl: "${url}", cache: { ttl: 60_000 }, logger })
    const read = async ({ prompts }) => console.log((await prompts.getResolved("p")).source)
    ${source}
    await setTimeout(500)
  `
  const args = ["--input-type=module", "--eval", program]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  return stdout
}

const retryAfter =
  (seconds: number): Handler<boolean> =>
  (_, response) => {
    response.writeHead(503, { "retry-after": String(seconds) }).end()
    return true
  }
const reset: Handler<boolean> = ({ socket }) => !!socket.destroy()
const ignore = () => true
const refresh =
  "const stale = client.withOptions({ cache: { ttl: 0 } }); await read(stale); await read(stale)"
const live = "await client.live({}); await read(client)"

it.each<[name: string, source: string, fault: Handler<boolean>, stdout: RegExp]>([
  ["a background refresh gets no response", refresh, ignore, /^fresh\nstale\n$/],
  ["a background refresh waits for its retry", refresh, retryAfter(5), /^fresh\nstale\nGET .* 503\n$/],
  ["live prompts wait for a change", live, ignore, /^live\n$/],
  ["live prompts pause after a failure", live, reset, /GET \/api\/v1\/resolved without a response/]
])("a program exits while %s", async (_, source, fault, stdout) => {
  expect(await run(source, fault)).toMatch(stdout)
})

it("a program does not exit while a call waits for its retry", async () => {
  let failures = 0
  const source = 'await client.prompts.get("p"); await read(client)'
  const stdout = await run(source, (...exchange) => failures++ === 0 && retryAfter(1)(...exchange))
  expect(stdout).toMatch(/\nfresh\n$/)
})
