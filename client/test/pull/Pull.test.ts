import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startApi } from "../../../test/api/startApi.ts"
import {
  archive,
  compareIds,
  fragment,
  fragmentBinding,
  key,
  prompt,
  tag,
  user,
  workspace
} from "../../../test/support/archives.ts"
import { makeDirectory, removeDirectories } from "../../../test/support/packages.ts"
import { findSlots } from "../../../src/domain/Resolution.ts"
import { type PromptBundle, PromptClient, verifyBundle } from "../../src/index.ts"

const main = join(import.meta.dirname, "../../src/pull/main.ts")
const bundleFile = "prompts.bundle.json"
const typesFile = "prompts.ts"

const home = workspace()
const owner = user()
const ownKey = key(home.id, owner)
const production = tag("production")
const tone = fragment("Write as {{brand}} does, for {{reader}}.")
const agent = prompt({
  title: "Support agent",
  current_content: "You are a support agent of {{shop}}.\nBe brief.\nBe kind.",
  current_version: 3,
  tags: [production.id],
  fragments: [fragmentBinding(tone, 1, { variable_overrides: { brand: "Acme" } })]
})
const template = prompt({
  title: "Announcement",
  prompt_type: "template",
  current_content: "{{ product }} is here"
})
const archived = prompt({ title: "Old", is_archived: true })
const others = Array.from({ length: 230 }, (_, index) =>
  prompt({ title: `Prompt ${index}`, current_content: `Content ${index}`, prompt_type: "user" })
)
const prompts = [agent, template, archived, ...others]
const api = startApi([
  archive({
    workspace: home,
    users: [owner],
    api_keys: [ownKey.stored],
    tags: [production],
    fragments: [tone],
    prompts
  })
])
afterAll(removeDirectories)

const apiKey = ownKey.plaintext

/** Runs `pull` in a separate process, against the service unless `env` says otherwise. */
const pull = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const child: ChildProcess = spawn(process.execPath, [main, "pull", ...args], {
    env: {
      PATH: process.env.PATH,
      PROMPT_RETRIEVAL_KEY: apiKey,
      PROMPT_RETRIEVAL_URL: api.service().url,
      ...env
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let [stdout, stderr] = ["", ""]
  child.stdout!.on("data", (chunk) => (stdout += chunk))
  child.stderr!.on("data", (chunk) => (stderr += chunk))
  const [code] = (await once(child, "close")) as [number]
  expect(stdout + stderr).not.toContain(apiKey)
  return { code, stdout, stderr }
}

const readText = (directory: string, name: string) => readFileSync(join(directory, name), "utf8")
const readBundle = (directory: string): PromptBundle => JSON.parse(readText(directory, bundleFile))
const readBoth = (directory: string) => [readText(directory, bundleFile), readText(directory, typesFile)]

/** Starts a proxy of the service, whose responses a handler may replace. */
const startProxy = async (
  handle: (request: IncomingMessage, response: ServerResponse) => boolean,
  changeHeaders: (headers: Headers) => void = () => {}
) => {
  const requests: Array<string> = []
  const server = createServer(async (request, response) => {
    requests.push(request.url!)
    if (handle(request, response)) return
    const { authorization } = request.headers
    const upstream = await fetch(api.service().url + request.url, {
      headers: { authorization: authorization! }
    })
    const headers = new Headers(upstream.headers)
    changeHeaders(headers)
    response.writeHead(upstream.status, Object.fromEntries(headers)).end(await upstream.text())
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    requests,
    env: { PROMPT_RETRIEVAL_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    close: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}

describe("pull", () => {
  let directory: string
  let first: Awaited<ReturnType<typeof pull>>
  beforeAll(async () => {
    directory = join(makeDirectory("pull"), "generated")
    first = await pull(["--out", directory])
  })

  it("writes every prompt of the list, ordered by id, with what the service returns for it", async () => {
    expect(first).toEqual({ code: 0, stdout: "232 prompts: 232 added\n", stderr: "" })
    expect(readdirSync(directory).toSorted()).toEqual([bundleFile, typesFile])
    const bundle = await verifyBundle(readBundle(directory))
    const listed = prompts.filter(({ is_archived }) => !is_archived).toSorted(compareIds)
    expect(bundle.prompts.map(({ id }) => id)).toEqual(listed.map(({ id }) => id))
    const client = new PromptClient({ apiKey, baseUrl: api.service().url })
    const headers = { authorization: `Bearer ${apiKey}` }
    for (const { id } of [agent, template, others[0]!]) {
      const { data } = await client.prompts.getResolved(id)
      const { title, prompt_type, target_model, resolved_content: content, fragment_count } = data
      const response = await fetch(`${api.service().url}/api/v1/prompts/${id}/resolved`, { headers })
      expect(bundle.prompts.find((prompt) => prompt.id === id)).toEqual({
        ...{ id, name: expect.any(String), title, prompt_type, target_model, content, fragment_count },
        version: prompts.find((prompt) => prompt.id === id)!.current_version,
        etag: response.headers.get("etag"),
        slots: [...findSlots(content)],
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/)
      })
    }
    const bundled = bundle.prompts.find(({ id }) => id === agent.id)!
    expect([bundled.name, bundled.slots]).toEqual(["support-agent", ["shop", "reader"]])
  })

  it("writes a constant for each prompt", () => {
    const text = readText(directory, typesFile)
    expect(text).toContain(`
/** Support agent */
export const supportAgent = {
  id: "${agent.id}",
  name: "support-agent",
  slots: ["shop", "reader"]
} as const
`)
    expect(text.match(/^export const /gm)).toHaveLength(232)
  })

  it("leaves both files untouched if nothing has changed, and pull --check and --frozen exit with 0", async () => {
    const before = [bundleFile, typesFile].map((name) => statSync(join(directory, name)))
    expect(await pull(["--out", directory])).toEqual({
      code: 0,
      stdout: "232 prompts: unchanged\n",
      stderr: ""
    })
    expect(await pull(["--out", directory, "--check"])).toEqual({ code: 0, stdout: "", stderr: "" })
    expect(await pull(["--out", directory, "--frozen"])).toEqual({ code: 0, stdout: "", stderr: "" })
    const after = [bundleFile, typesFile].map((name) => statSync(join(directory, name)))
    expect(after.map(({ ino, mtimeMs }) => [ino, mtimeMs])).toEqual(
      before.map(({ ino, mtimeMs }) => [ino, mtimeMs])
    )
    const again = makeDirectory("pull")
    await pull(["--out", again])
    expect(readBoth(again)).toEqual(readBoth(directory))
  })

  it("--tag and --type select prompts; a selection without prompts fails unless --allow-empty is given", async () => {
    const out = makeDirectory("pull")
    const listTitles = () => readBundle(out).prompts.map(({ title }) => title)
    await pull(["--out", out, "--tag", "production"])
    expect(listTitles()).toEqual(["Support agent"])
    await pull(["--out", out, "--type=template"])
    expect(listTitles()).toEqual(["Announcement"])
    const none = ["--out", out, "--tag", "production", "--type", "template"]
    for (const args of [none, [...none, "--check"]]) {
      expect(await pull(args)).toMatchObject({
        code: 1,
        stdout: "",
        stderr:
          "prompt-retrieval-client: no prompt matches; check --tag and --type, or allow it with --allow-empty\n"
      })
    }
    expect(listTitles()).toEqual(["Announcement"])
    expect(await pull([...none, "--allow-empty"])).toMatchObject({
      code: 0,
      stdout: "0 prompts: 1 removed\n"
    })
    expect(listTitles()).toEqual([])
    expect(readText(out, typesFile)).toMatch(/\nexport \{\}\n$/)
    await verifyBundle(readBundle(out))
  })

  it("--check prints a diff of every changed text and exits with 1; the next pull reports what it changed", async () => {
    const out = makeDirectory("pull")
    await pull(["--out", out, "--tag", "production"])
    const before = readBoth(out)
    const content = "You are a support agent of {{store}}.\nBe brief.\nBe kind."
    await api.sql(
      "UPDATE prompts SET current_content = $1, title = $2, current_version = 4, updated_at = now() WHERE id = $3",
      [content, "Support bot", agent.id]
    )
    try {
      // Without the change feed's notification, the service's cache may be up to 30 s old.
      const selection = ["--out", out, "--tag", "production"]
      await expect.poll(async () => (await pull([...selection, "--check"])).code, { timeout: 20_000 }).toBe(1)
      const checked = await pull([...selection, "--check"])
      expect(checked.stdout.split("\n")).toEqual([
        `--- ${agent.id} Support bot`,
        `+++ ${agent.id} Support bot`,
        "-name: support-agent",
        "+name: support-bot",
        "-title: Support agent",
        "+title: Support bot",
        "-version: 3",
        "+version: 4",
        "-slots: shop, reader",
        "+slots: store, reader",
        "@@ -1,4 +1,4 @@",
        "-You are a support agent of {{shop}}.",
        "+You are a support agent of {{store}}.",
        " Be brief.",
        " Be kind.",
        " ",
        `renamed: supportAgent is now supportBot (prompt ${agent.id})`,
        ""
      ])
      expect(checked.stderr).toBe(
        "prompt-retrieval-client: the service differs from prompts.bundle.json: 1 changed; run 'pull' and review the change\n"
      )
      expect(readBoth(out)).toEqual(before)
      expect(await pull(selection)).toEqual({
        code: 0,
        stdout: `1 prompt: 1 changed\nrenamed: supportAgent is now supportBot (prompt ${agent.id})\n`,
        stderr: ""
      })
      expect(await pull([...selection, "--check"])).toMatchObject({ code: 0 })
    } finally {
      await api.sql(
        "UPDATE prompts SET current_content = $1, title = $2, current_version = 3 WHERE id = $3",
        [agent.current_content, agent.title, agent.id]
      )
    }
  })

  it("--frozen sends no request, needs no key and refuses damaged files, whose prompt it names", async () => {
    const out = makeDirectory("pull")
    await pull(["--out", out, "--tag", "production"])
    const offline = { PROMPT_RETRIEVAL_KEY: "", PROMPT_RETRIEVAL_URL: "http://127.0.0.1:1" }
    const frozen = () => pull(["--out", out, "--frozen"], offline)
    expect(await frozen()).toEqual({ code: 0, stdout: "", stderr: "" })
    const [bundle, types] = readBoth(out)
    writeFileSync(join(out, bundleFile), bundle!.replace("Be kind", "Be rude"))
    expect(await frozen()).toMatchObject({ code: 1, stderr: expect.stringContaining(agent.id) })
    writeFileSync(join(out, bundleFile), bundle!)
    writeFileSync(join(out, typesFile), types!.replace('"shop"', '"shops"'))
    expect(await frozen()).toMatchObject({
      code: 1,
      stderr: "prompt-retrieval-client: prompts.ts does not belong to prompts.bundle.json; run 'pull' again\n"
    })
    rmSync(join(out, bundleFile))
    expect(await frozen()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("there is no prompts.bundle.json")
    })
  })

  it("counts files with the line endings of Windows as unchanged", async () => {
    const out = makeDirectory("pull")
    await pull(["--out", out, "--tag", "production"])
    const windows = readBoth(out).map((text) => text.replaceAll("\n", "\r\n"))
    for (const [index, name] of [bundleFile, typesFile].entries()) {
      writeFileSync(join(out, name), windows[index]!)
    }
    expect((await pull(["--out", out, "--tag", "production"])).stdout).toBe("1 prompt: unchanged\n")
    expect(readBoth(out)).toEqual(windows)
  })

  it("writes only the file that differs", async () => {
    const out = makeDirectory("pull")
    await pull(["--out", out, "--tag", "production"])
    const before = readBoth(out)
    const { ino } = statSync(join(out, bundleFile))
    writeFileSync(join(out, typesFile), `${before[1]}\n`)
    expect((await pull(["--out", out, "--tag", "production"])).stdout).toBe("1 prompt: rewritten\n")
    expect(readBoth(out)).toEqual(before)
    expect(statSync(join(out, bundleFile)).ino).toBe(ino)
  })

  it("replaces damaged files", async () => {
    const out = makeDirectory("pull")
    await pull(["--out", out, "--tag", "production"])
    const before = readBoth(out)
    writeFileSync(join(out, bundleFile), "{")
    expect(await pull(["--out", out, "--tag", "production"])).toMatchObject({ code: 0 })
    expect(readBoth(out)).toEqual(before)
  })

  it("writes neither file if one of them cannot be written, and leaves no temporary file", async () => {
    const out = makeDirectory("pull")
    mkdirSync(join(out, bundleFile))
    expect(await pull(["--out", out, "--tag", "production"])).toMatchObject({ code: 1, stdout: "" })
    expect(readdirSync(out)).toEqual([bundleFile])
    rmSync(join(out, bundleFile), { recursive: true })
    writeFileSync(join(out, bundleFile), "old")
    mkdirSync(join(out, typesFile))
    const failed = await pull(["--out", out, "--tag", "production"])
    expect(failed).toMatchObject({ code: 1, stdout: "" })
    expect(failed.stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
    expect(readdirSync(out).toSorted()).toEqual([bundleFile, typesFile])
    expect(readText(out, bundleFile)).toBe("old")
  })

  it("does not overwrite a prompts.ts that somebody else has written", async () => {
    const out = makeDirectory("pull")
    writeFileSync(join(out, typesFile), "export const mine = 1\n")
    expect(await pull(["--out", out])).toMatchObject({ code: 2, stderr: expect.stringContaining("--out") })
    expect(readdirSync(out)).toEqual([typesFile])
  })

  it("refuses a prompt that contains the API key, and writes nothing", async () => {
    const out = makeDirectory("pull")
    await api.sql("UPDATE prompts SET current_content = $1 WHERE id = $2", [`Use ${apiKey}`, template.id])
    try {
      const selection = ["--out", out, "--type", "template"]
      await expect.poll(async () => (await pull(selection)).code, { timeout: 20_000 }).toBe(1)
      const refused = await pull(selection)
      expect(refused.stderr).toContain(`Prompt ${template.id} contains the API key`)
    } finally {
      await api.sql("UPDATE prompts SET current_content = $1 WHERE id = $2", [
        template.current_content,
        template.id
      ])
    }
  })

  it("waits as long as Retry-After says and then continues; no other request is sent meanwhile", async () => {
    let refusedAt = 0
    const early: Array<string> = []
    const proxy = await startProxy((request, response) => {
      if (refusedAt !== 0 && Date.now() - refusedAt < 1_000) early.push(request.url!)
      if (proxy.requests.length !== 60) return false
      refusedAt = Date.now()
      response.writeHead(429, { "content-type": "application/json", "retry-after": "1" })
      response.end(JSON.stringify({ error: { code: "RATE_LIMITED", message: "Rate limit exceeded" } }))
      return true
    })
    try {
      const out = makeDirectory("pull")
      expect(await pull(["--out", out], proxy.env)).toMatchObject({
        code: 0,
        stdout: "232 prompts: 232 added\n"
      })
      expect(Date.now() - refusedAt).toBeGreaterThanOrEqual(1_000)
      // The calls that were in flight when the 429 arrived.
      expect(early.length).toBeLessThan(4)
      expect(readBoth(out)).toEqual(readBoth(directory))
    } finally {
      proxy.close()
    }
  })

  it("takes the version from Prompt-Version, and the ETag without the W/ of a proxy that compresses", async () => {
    const proxy = await startProxy(
      () => false,
      (headers) => {
        headers.set("prompt-version", "17")
        headers.set("etag", `W/${headers.get("etag")}`)
      }
    )
    try {
      const out = makeDirectory("pull")
      await pull(["--out", out, "--tag", "production"], proxy.env)
      const [bundled] = readBundle(out).prompts
      expect(bundled).toMatchObject({ version: 17, etag: expect.stringMatching(/^"[^"]+"$/) })
      expect(proxy.requests).toEqual([
        "/api/v1/prompts?per_page=100&tag=production",
        // All prompts decide whether a name is unique: three pages, read until two readings agree.
        ...["per_page=100", "page=2&per_page=100", "page=3&per_page=100"].map(
          (query) => `/api/v1/prompts?${query}`
        ),
        ...["per_page=100", "page=2&per_page=100", "page=3&per_page=100"].map(
          (query) => `/api/v1/prompts?${query}`
        ),
        `/api/v1/prompts/${agent.id}/resolved`
      ])
    } finally {
      proxy.close()
    }
  })

  it("without Prompt-Version, reads again until the prompt was the same before and after its content was read", async () => {
    let edits = 0
    const respond = (response: ServerResponse, data: object, meta?: object) => {
      response.writeHead(200, { "content-type": "application/json", etag: `"${edits}"` })
      response.end(JSON.stringify({ data, ...(meta && { meta }) }))
      return true
    }
    const summary = () => ({ ...template, current_version: edits, updated_at: String(edits) })
    const proxy = await startProxy(({ url }, response) => {
      if (url!.includes("?")) return respond(response, [summary()], { page: 1, per_page: 100, total: 1 })
      if (!url!.endsWith("/resolved")) return respond(response, { ...summary(), current_content: "" })
      const { id, title, prompt_type, target_model } = template
      respond(response, {
        id,
        title,
        prompt_type,
        target_model,
        resolved_content: `v${edits}`,
        fragment_count: 0
      })
      // The prompt is edited after each of the first two readings of its content.
      if (edits < 2) edits++
      return true
    })
    try {
      const out = makeDirectory("pull")
      expect(await pull(["--out", out], proxy.env)).toMatchObject({ code: 0 })
      expect(readBundle(out).prompts).toMatchObject([{ version: 2, content: "v2", etag: '"2"' }])
    } finally {
      proxy.close()
    }
  })

  it("reads a list of several pages again if a prompt was deleted while it was read", async () => {
    let isDeleted = false
    const pages = [others.slice(0, 100), others.slice(100, 200), others.slice(200)]
    const proxy = await startProxy(({ url }, response) => {
      if (!url!.includes("?")) return false
      const page = Number(new URL(url!, "http://host").searchParams.get("page") ?? 1)
      const list = isDeleted ? others.slice(1) : others
      const data = isDeleted ? list.slice((page - 1) * 100, page * 100) : pages[page - 1]
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify({ data, meta: { page, per_page: 100, total: list.length } }))
      // The prompts after the deleted one move to earlier pages, so the next page misses one of them.
      isDeleted = true
      return true
    })
    try {
      const out = makeDirectory("pull")
      expect(await pull(["--out", out], proxy.env)).toMatchObject({ code: 0 })
      const ids = readBundle(out).prompts.map(({ id }) => id)
      expect(ids).toEqual(
        others
          .slice(1)
          .map(({ id }) => id)
          .toSorted()
      )
    } finally {
      proxy.close()
    }
  })

  it.each([
    [["--tags", "x"], /unknown flag; the flags are --tag, --type, --out/],
    [["--tag"], /--tag needs a value/],
    [["--tag", "--check"], /--tag needs a value/],
    [["--tag", "a", "--tag=b"], /--tag must be given only once/],
    [["--type", "poem"], /--type must be one of system, user/],
    [["--check=yes"], /--check takes no value/],
    [["--check", "--frozen"], /--check and --frozen exclude each other/],
    [["--frozen", "--tag", "x"], /--frozen reads no prompts/],
    [["--frozen", "--allow-empty"], /--frozen reads no prompts/],
    [["production"], /only flags/],
    [["--api-key", apiKey], /set PROMPT_RETRIEVAL_KEY/],
    [["--base-url", "ftp://host"], /--base-url or PROMPT_RETRIEVAL_URL must be an http or https URL/]
  ] as const)("exits with 2 and one line for %j", async (args, message) => {
    const { code, stdout, stderr } = await pull(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
    expect(stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
    expect(stderr).toMatch(message)
  })

  it.each([
    ["without a key", { PROMPT_RETRIEVAL_KEY: "" }, 2, /PROMPT_RETRIEVAL_KEY is required/],
    [
      "with a key that no header can carry",
      { PROMPT_RETRIEVAL_KEY: "a b" },
      2,
      /PROMPT_RETRIEVAL_KEY must be/
    ],
    [
      "with a key that the service rejects",
      { PROMPT_RETRIEVAL_KEY: `key_live_${"0".repeat(64)}` },
      1,
      /Invalid API key; check PROMPT_RETRIEVAL_KEY/
    ],
    ["of a service with another path", { PROMPT_RETRIEVAL_URL: "/elsewhere" }, 1, /check baseUrl/]
  ] as const)("a pull %s exits with one line and writes nothing", async (_, env, exitCode, message) => {
    const out = makeDirectory("pull")
    const url = (env as { PROMPT_RETRIEVAL_URL?: string }).PROMPT_RETRIEVAL_URL
    const variables = url === undefined ? env : { PROMPT_RETRIEVAL_URL: api.service().url + url }
    const { code, stdout, stderr } = await pull(["--out", out], variables)
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: "" })
    expect(stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
    expect(stderr).toMatch(message)
    expect(readdirSync(out)).toEqual([])
  })

  it("--help names every flag and variable", async () => {
    const { code, stdout } = await pull(["--help"])
    expect(code).toBe(0)
    for (const name of [
      "--tag",
      "--type",
      "--out",
      "--base-url",
      "--allow-empty",
      "--check",
      "--frozen",
      "PROMPT_RETRIEVAL_KEY"
    ]) {
      expect(stdout).toContain(name)
    }
  })
})
