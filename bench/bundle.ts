/**
 * Measures what bundles cost: the milliseconds that a bundle of 1,000 prompts adds to the start of an application, and
 * the memory of a `pull` of 10,000 prompts from a service without rate limits.
 *
 * A start is a new process that imports the client, creates one, and, with the bundle, reads its file, verifies it and
 * gets a first text from it. Processes with and without the bundle alternate, and the difference of their medians
 * counts. Exits with 1 if it exceeds 20 ms, or the memory 150 MiB. Takes about a minute.
 *
 *     npm run build --workspace client && node bench/bundle.ts
 */
import { execFile } from "node:child_process"
import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { median } from "./load.ts"

const starts = 25
const maxStartMs = 20
const pulledPrompts = 10_000
const maxPullMiB = 150
/** The length of a prompt's content, in characters. */
const contentLength = 2_000

const client = join(import.meta.dirname, "../client/dist")
const run = promisify(execFile)
const content = "You are a support agent of {{shop}}. ".repeat(contentLength).slice(0, contentLength)

/** Starts a service that lists `count` prompts and returns each of them. */
const startService = async (count: number) => {
  const ids = Array.from({ length: count }, () => randomUUID())
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://host")
    const page = Number(searchParams.get("page") ?? 1)
    const [, id] = /prompts\/([^/]+)\/resolved$/.exec(pathname) ?? []
    const common = { prompt_type: "system", target_model: "model" }
    const body =
      id === undefined
        ? {
            data: ids
              .slice((page - 1) * 100, page * 100)
              .map((id) => ({ id, title: `Prompt ${id}`, ...common, current_version: 1, updated_at: "" })),
            meta: { page, per_page: 100, total: count }
          }
        : {
            data: {
              id,
              title: `Prompt ${id}`,
              ...common,
              resolved_content: `${content} ${id}`,
              fragment_count: 0
            }
          }
    response.writeHead(200, { "content-type": "application/json", etag: `"${id}"`, "prompt-version": "1" })
    response.end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

/** Reports the greatest memory of the process that loads this module. */
const reporter = `process.on("exit", () => console.error("rss " + process.resourceUsage().maxRSS))`

/** Pulls the prompts of a service into a directory. Returns the greatest resident set size of the process, in MiB. */
const pull = async (url: string, directory: string, flags: ReadonlyArray<string> = []): Promise<number> => {
  const args = [
    "--import",
    `data:text/javascript,${encodeURIComponent(reporter)}`,
    join(client, "pull/main.js")
  ]
  const env = { PROMPT_RETRIEVAL_API_KEY: "key_live_0", PROMPT_RETRIEVAL_BASE_URL: url }
  const { stderr } = await run(process.execPath, [...args, "pull", "--out", directory, ...flags], { env })
  return Number(/rss (\d+)/.exec(stderr)![1]) / 1024
}

/** A program that prints the milliseconds that it takes to import the client and to run `body`. */
const makeProgram = (body: string): string => `
import { readFileSync } from "node:fs"
const start = performance.now()
const { PromptClient, verifyBundle } = await import(${JSON.stringify(join(client, "index.js"))})
${body}
console.log(performance.now() - start)
`

const programs = {
  "without.mjs": makeProgram(`new PromptClient({ apiKey: "key_live_0" })`),
  "with.mjs": makeProgram(`
const bundle = await verifyBundle(JSON.parse(readFileSync("prompts.bundle.json", "utf8")))
const client = new PromptClient({ apiKey: "key_live_0", bundle, mode: "bundle-first" })
const { source } = await client.prompts.getResolved(bundle.prompts[0].id)
if (source !== "bundled") throw new Error(source)`)
}

/** Runs programs in turns. Returns the median of the milliseconds that each prints. */
const measureStarts = async (directory: string, names: ReadonlyArray<string>): Promise<Array<number>> => {
  const times = names.map((): Array<number> => [])
  for (let round = 0; round < starts; round++) {
    for (const [index, name] of names.entries()) {
      const { stdout } = await run(process.execPath, [name], { cwd: directory })
      times[index]!.push(Number(stdout))
    }
  }
  return times.map((values) => median(values.toSorted((a, b) => a - b)))
}

const directory = mkdtempSync(join(tmpdir(), "bundle-"))
try {
  const small = await startService(1_000)
  await pull(small.url, directory)
  small.close()
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(directory, name), text)
  const [without, withBundle] = (await measureStarts(directory, Object.keys(programs))) as [number, number]
  const added = withBundle - without
  console.log(
    `a bundle of 1,000 prompts adds ${added.toFixed(1)} ms to a start: ${without.toFixed(1)} without, ${withBundle.toFixed(1)} ms with it`
  )
  const large = await startService(pulledPrompts)
  const first = await pull(large.url, directory)
  const second = await pull(large.url, directory)
  const checked = await pull(large.url, directory, ["--check"])
  large.close()
  const memory = { first, "with an older bundle": second, "--check": checked }
  for (const [name, mebibytes] of Object.entries(memory)) {
    console.log(`pull of ${pulledPrompts} prompts, ${name}: ${mebibytes.toFixed(0)} MiB`)
  }
  if (added > maxStartMs || Object.values(memory).some((size) => size > maxPullMiB)) process.exitCode = 1
} finally {
  rmSync(directory, { recursive: true })
}
