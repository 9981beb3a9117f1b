import { mkdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { verifyBundle } from "../../src/index.ts"
import { key } from "../support.ts"
import { agent, bundleFile, prompts, startPullService, typesFile } from "./pullService.ts"

const toSuccess = (stdout: string) => ({ code: 0, stdout, stderr: "" })
const toFailure = (text: string) => ({ code: 1, stdout: "", stderr: `prompt-retrieval-client: ${text}\n` })
const noMatch = "no prompt matches; check --tag and --type, or allow it with --allow-empty"
const toChanged = (count: number) => toSuccess(`${count} prompts: ${bundleFile} and ${typesFile} changed\n`)

it("pull writes every prompt, ordered by name, and a bundled result has the data and the version that the service returns", async () => {
  const { service, pull, read, readBundle, list } = await startPullService(prompts)
  expect(await pull()).toEqual(toChanged(232))
  expect(list()).toEqual([bundleFile, typesFile])
  expect(service.requests).toEqual(
    [1, 2, 3].map((page) => `/api/v1/resolved?page=${page}&per_page=100&names=true`)
  )
  const bundle = await verifyBundle(readBundle())
  expect(bundle.prompts.map(({ name }) => name)).toEqual(prompts.map(({ name }) => name).toSorted())
  expect(bundle.prompts.find(({ id }) => id === agent.id)).toEqual({
    ...agent,
    target_model: "",
    slots: ["shop", "reader"],
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/)
  })
  const client = service.connect()
  const bundled = client.withOptions({ bundle, mode: "bundle-first" })
  for (const { name } of prompts.slice(0, 3)) {
    const [fresh, result] = await Promise.all([
      client.prompts.getResolved(name),
      bundled.prompts.getResolved(name)
    ])
    expect([result.source, result.version]).toEqual(["bundled", fresh.version])
    expect(JSON.stringify(result)).toBe(JSON.stringify(fresh))
  }
  expect(read(typesFile)).toContain(
    '/** Support agent */\nexport const supportAgent = {\n  name: "support-agent",\n  type: "system",\n  slots: ["shop", "reader"]\n} as const\n'
  )
})

it("if nothing has changed, pull leaves both files untouched, and pull --check and pull --frozen exit with 0", async () => {
  const { pull, directory } = await startPullService()
  const repeat = (...flags: ReadonlyArray<string>) => pull(["--out", "generated", ...flags])
  await repeat()
  const listInodes = () =>
    [bundleFile, typesFile].map((name) => statSync(join(directory, "generated", name)).ino)
  const before = listInodes()
  expect(await repeat()).toEqual(toSuccess("1 prompt: nothing changed\n"))
  expect(await repeat("--check")).toEqual(toSuccess("1 prompt: nothing differs\n"))
  expect(await repeat("--frozen")).toEqual(toSuccess(""))
  expect(listInodes()).toEqual(before)
})

it("pull sends the filters --tag and --type, and without --allow-empty, pull fails if no prompt matches", async () => {
  const { service, pull, read, readBundle } = await startPullService(prompts)
  await pull(["--tag", "production", "--type=template"])
  expect(service.requests).toEqual([
    "/api/v1/resolved?page=1&per_page=100&tag=production&type=template&names=true"
  ])
  expect(readBundle().prompts.map(({ name }) => name)).toEqual(["announcement"])
  const none = ["--type", "few-shot"]
  expect(await pull([...none, "--check"])).toEqual(toFailure(noMatch))
  expect(await pull([...none, "--allow-empty"])).toEqual(toChanged(0))
  expect(read(typesFile)).toMatch(/\nexport \{\}\n$/)
  expect((await verifyBundle(readBundle())).prompts).toEqual([])
})

it("pull --check prints the names of the prompts that were changed, added, removed or renamed, exits with 1 and writes nothing", async () => {
  const { service, pull, read } = await startPullService(
    [agent, { name: "old" }, { name: "gone" }].map((prompt) => ({ content: "Text", ...prompt }))
  )
  await pull()
  const before = [read(bundleFile), read(typesFile)]
  service.set({ ...agent, content: "You are a support agent of {{store}}." })
  service.set({ name: "old", content: "Text", version: 2 })
  service.remove("gone")
  service.set({ name: "zebra", content: "New" })
  expect(await pull(["--check"])).toEqual({
    ...toFailure(
      "the service differs from prompts.bundle.json and prompts.ts; run 'pull' and review the change"
    ),
    stdout: "gone\nold\nsupport-agent\nzebra\n"
  })
  expect([read(bundleFile), read(typesFile)]).toEqual(before)
})

it("pull --frozen needs neither a request nor a key, and fails if a file is damaged or missing", async () => {
  const { pull, read, write, directory } = await startPullService()
  await pull()
  const offline = { PROMPT_RETRIEVAL_KEY: "", PROMPT_RETRIEVAL_URL: "http://127.0.0.1:1" }
  const frozen = () => pull(["--frozen"], offline)
  const [bundle, types] = [read(bundleFile), read(typesFile)]
  write(bundleFile, bundle.replaceAll("\n", "\r\n"))
  write(typesFile, types.replaceAll("\n", "\r\n"))
  expect(await frozen()).toEqual(toSuccess(""))
  write(bundleFile, bundle.replace("Be brief", "Be rude"))
  expect(await frozen()).toMatchObject({ code: 1, stderr: expect.stringContaining(agent.id) })
  write(bundleFile, bundle)
  write(typesFile, types.replace('"shop"', '"shops"'))
  expect(await frozen()).toEqual(
    toFailure("prompts.ts does not belong to prompts.bundle.json; run 'pull' again")
  )
  rmSync(join(directory, bundleFile))
  expect(await frozen()).toEqual(
    toFailure("there is no prompts.bundle.json in the directory of --out; run 'pull'")
  )
})

it("pull writes neither file if one of the files cannot be written, and leaves no temporary file", async () => {
  const { pull, read, write, list, directory } = await startPullService()
  write(bundleFile, "old")
  mkdirSync(join(directory, typesFile))
  const { code, stdout, stderr } = await pull()
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
  expect(stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
  expect(list()).toEqual([bundleFile, typesFile])
  expect(read(bundleFile)).toBe("old")
})

it("if a prompt is deleted while the list is read, pull reads the list again", async () => {
  const { service, pull, readBundle } = await startPullService(prompts, ({ url }) => {
    // FakeService lists prompts in the order of their addition, so a removal moves all later prompts.
    if (url!.includes("page=2")) service.remove("prompt-0")
    return false
  })
  expect(await pull()).toEqual(toChanged(231))
  expect(service.requests).toHaveLength(6)
  expect(readBundle().prompts.some(({ name }) => name === "prompt-98")).toBe(true)
})

it.each([
  [2, "a prompt that is too large", () => "p", "1 of 2 prompts, because they are too large"],
  [20, "another prompt each time", (n: number) => `p${n}`, "the list of prompts changes too often"]
])(
  "pull fails after it has read the list %i times if the service leaves out %s",
  async (reads, _, toName, message) => {
    let requests = 0
    const { pull, list } = await startPullService([], (_, response) => {
      const meta = { page: 1, per_page: 100, total: 2, prompts: [{ name: toName(++requests) }] }
      response.end(JSON.stringify({ data: [{ id: "p", resolved_content: "Text" }], meta }))
      return true
    })
    const { code, stderr } = await pull()
    expect([code, stderr, list(), requests]).toEqual([1, expect.stringContaining(message), [], reads])
  }
)

const invalid = "the service returned an invalid prompt support-agent; check --base-url"
const withKey =
  "the prompt support-agent contains the API key, which no file may contain; remove it and revoke the key"

it.each<{
  readonly change?: object
  readonly files?: Readonly<Record<string, string>>
  readonly args?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  readonly code: 1 | 2
  readonly message: string
}>([
  { code: 1, change: { content: `Use ${key}` }, message: withKey },
  { code: 1, change: { name: "a = 1; x" }, message: invalid.replace("support-agent", "a = 1; x") },
  { code: 1, change: { title: 1 }, message: invalid },
  { code: 1, change: { fragment_count: 1.5 }, message: invalid },
  { code: 2, files: { [typesFile]: "export const mine = 1\n" }, message: "--out" },
  { code: 2, args: ["--tags", "x"], message: "unknown flag; the flags are --tag, --type, --out" },
  { code: 2, args: ["--type", "poem"], message: "--type must be one of system, user" },
  { code: 2, args: ["--check=yes"], message: "'--check' does not take an argument" },
  { code: 2, args: ["--frozen", "--tag", "x"], message: "--frozen reads no prompts" },
  { code: 2, args: ["production"], message: "only flags" },
  { code: 2, args: ["--api-key", key], message: "set PROMPT_RETRIEVAL_KEY" },
  { code: 2, args: ["--base-url", "http://user@host"], message: "--base-url or PROMPT_RETRIEVAL_URL" },
  { code: 2, env: { PROMPT_RETRIEVAL_KEY: "" }, message: "PROMPT_RETRIEVAL_KEY is required" },
  { code: 2, env: { PROMPT_RETRIEVAL_KEY: "a b" }, message: "PROMPT_RETRIEVAL_KEY must be an API key" }
])(
  "pull exits with $code, prints one line to stderr and writes nothing: $message",
  async ({ change, files = {}, args, env, code, message }) => {
    const { pull, write, read, list } = await startPullService([{ ...agent, ...change }])
    for (const [name, text] of Object.entries(files)) write(name, text)
    const result = await pull(args, env)
    const line = expect.stringMatching(/^prompt-retrieval-client: [^\n]+\n$/)
    expect(result).toEqual({ code, stdout: "", stderr: line })
    expect(result.stderr).toContain(message)
    expect(Object.fromEntries(list().map((name) => [name, read(name)]))).toEqual(files)
  }
)

it("pull --help names every flag and environment variable, and pull reports a rejected key on one line", async () => {
  const { service, pull } = await startPullService()
  const { code, stdout } = await pull(["--help"])
  expect(code).toBe(0)
  const flags = "--tag --type --out --base-url --allow-empty --check --frozen"
  for (const name of `${flags} PROMPT_RETRIEVAL_KEY PROMPT_RETRIEVAL_URL`.split(" "))
    expect(stdout).toContain(name)
  service.failWith(401)
  expect(await pull()).toEqual(toFailure("API key has been revoked; check PROMPT_RETRIEVAL_KEY"))
})
