/**
 * Measures what bundles cost: the milliseconds that a bundle of 1,000 prompts adds to the start of an application, and
 * the memory of a `pull` of 10,000 prompts from a service without rate limits.
 *
 * The time of a start is measured from the creation of a process. Four programs run in turn. Each loads the client and
 * creates an instance:
 *
 * - `without` does nothing else.
 * - `imported` also imports the file of the bundle, verifies the bundle and gets a first text from it.
 * - `parsed` does the same, but reads and parses the file.
 * - `by hand` reads the file, hashes its bytes once and parses it, without verifying anything.
 *
 * The results are the differences of the medians from that of `without`, for prompts of 600 characters, as in the other
 * benchmarks, and of 2,000. Exits with 1 if the bundle of the shorter prompts adds more than 20 ms, or if the memory
 * exceeds 150 MiB. Takes about a minute.
 *
 *     npm run build --workspace client && npx node bench/bundle.ts
 *     npx node bench/bundle.ts --node /usr/bin/node      # starts another version of Node
 */
import { execFile } from "node:child_process"
import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs, promisify } from "node:util"
import { median } from "./load.ts"

const starts = 25
const maxStartMs = 20
const pulledPrompts = 10_000
const maxPullMiB = 150
/** The lengths of the contents of prompts, in characters: as in the other benchmarks, and longer. */
const [usualLength, greatLength] = [600, 2_000] as const

const { values } = parseArgs({ options: { node: { type: "string", default: process.execPath } } })
const client = join(import.meta.dirname, "../client/dist")
const run = promisify(execFile)
/** Starts a service that lists `count` prompts with contents of a length and returns each of them. */
const startService = async (count: number, length: number) => {
  const content = "You are a support agent of {{shop}}. ".repeat(length).slice(0, length)
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
  const env = { PROMPT_RETRIEVAL_KEY: "key_live_0", PROMPT_RETRIEVAL_URL: url }
  const { stderr } = await run(values.node, [...args, "pull", "--out", directory, ...flags], { env })
  return Number(/rss (\d+)/.exec(stderr)![1]) / 1024
}

/** A program that prints the milliseconds from the creation of its process until `body` has run. */
const makeProgram = (body: string, ...imports: ReadonlyArray<string>): string => `
import { PromptClient, verifyBundle } from ${JSON.stringify(join(client, "index.js"))}
${imports.join("\n")}
${body}
console.log(performance.now())
`

const importFile = `import json from "./prompts.bundle.json" with { type: "json" }`
const importFs = `import { readFileSync } from "node:fs"`
const importCrypto = `import { createHash } from "node:crypto"`
const createClient = `new PromptClient({ apiKey: "key_live_0" })`
const getFirstText = `
const bundle = await verifyBundle(json)
const client = new PromptClient({ apiKey: "key_live_0", bundle, mode: "bundle-first" })
const { source } = await client.prompts.getResolved(bundle.prompts[0].id)
if (source !== "bundled") throw new Error(source)`

const programs = {
  without: makeProgram(createClient),
  imported: makeProgram(getFirstText, importFile),
  parsed: makeProgram(
    `const json = JSON.parse(readFileSync("prompts.bundle.json", "utf8"))${getFirstText}`,
    importFs
  ),
  "by hand": makeProgram(
    `${createClient}
const bytes = readFileSync("prompts.bundle.json")
createHash("sha256").update(bytes).digest("hex")
JSON.parse(bytes.toString())`,
    importFs,
    importCrypto
  )
}
type Program = keyof typeof programs

/** Runs the programs in turn. Returns the median of the milliseconds that each program prints. */
const measureStarts = async (directory: string): Promise<Record<Program, number>> => {
  const names = Object.keys(programs) as Array<Program>
  const times = names.map((): Array<number> => [])
  for (let round = 0; round < starts; round++) {
    for (const [index, name] of names.entries()) {
      const { stdout } = await run(values.node, [`${name}.mjs`], { cwd: directory })
      times[index]!.push(Number(stdout))
    }
  }
  const medians = times.map((values) => median(values.toSorted((a, b) => a - b)))
  return Object.fromEntries(names.map((name, index) => [name, medians[index]!])) as Record<Program, number>
}

const directory = mkdtempSync(join(tmpdir(), "bundle-"))

/** Measures the starts with a bundle of 1,000 prompts. Returns the greatest number of milliseconds that it adds. */
const measureBundle = async (length: number): Promise<number> => {
  const service = await startService(1_000, length)
  await pull(service.url, directory)
  service.close()
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(directory, `${name}.mjs`), text)
  const medians = await measureStarts(directory)
  const { without, imported, parsed } = medians
  const byHand = medians["by hand"] - without
  for (const [name, time] of Object.entries({ imported, parsed })) {
    const added = time - without
    console.log(
      `a bundle of 1,000 prompts of ${length} characters, ${name}, adds ${added.toFixed(1)} ms to a start, ${(added / byHand).toFixed(2)} times what reading, hashing and parsing the file by hand adds: ${without.toFixed(1)} without, ${time.toFixed(1)} ms with it`
    )
  }
  return Math.max(imported, parsed) - without
}

try {
  const added = await measureBundle(usualLength)
  await measureBundle(greatLength)
  const large = await startService(pulledPrompts, greatLength)
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
