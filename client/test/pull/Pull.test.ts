import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { compareIds } from "../../../test/support/archives.ts"
import { makeDirectory, removeDirectories } from "../../../test/support/programs/packages.ts"
import { findSlots } from "../../../src/domain/Resolution.ts"
import { PromptClient, verifyBundle } from "../../src/index.ts"
import {
  agent,
  api,
  apiKey,
  bundleFile,
  others,
  prompts,
  pull,
  readBoth,
  readBundle,
  readText,
  startPullService,
  template,
  typesFile
} from "./pullService.ts"

startPullService()

afterAll(removeDirectories)

describe("pull", () => {
  let directory: string
  let first: Awaited<ReturnType<typeof pull>>
  beforeAll(async () => {
    directory = join(makeDirectory("pull"), "generated")
    first = await pull(["--out", directory])
  })

  it("pull writes every prompt of the list, ordered by id, with the fields that the service returns", async () => {
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

  it("if nothing has changed, pull leaves both files untouched, and pull --check and pull --frozen exit with 0", async () => {
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

  it("pull --tag and --type select prompts, and pull fails if no prompt matches, unless --allow-empty is given", async () => {
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

  it("pull --check prints a diff of every changed text and exits with 1, and the next pull writes and reports the changes", async () => {
    const out = makeDirectory("pull")
    await pull(["--out", out, "--tag", "production"])
    const before = readBoth(out)
    const content = "You are a support agent of {{store}}.\nBe brief.\nBe kind."
    await api.sql(
      "UPDATE prompts SET current_content = $1, title = $2, current_version = 4, updated_at = now() WHERE id = $3",
      [content, "Support bot", agent.id]
    )
    try {
      // The service may return a cached response until the service is notified of the edit.
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

  it("pull --frozen sends no request, needs no key, and fails if a file is damaged or missing; the error for a damaged prompt contains the prompt's id", async () => {
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

  it("pull replaces a damaged bundle", async () => {
    const out = makeDirectory("pull")
    await pull(["--out", out, "--tag", "production"])
    const before = readBoth(out)
    writeFileSync(join(out, bundleFile), "{")
    expect(await pull(["--out", out, "--tag", "production"])).toMatchObject({ code: 0 })
    expect(readBoth(out)).toEqual(before)
  })

  it("pull writes neither file if one of the files cannot be written, and leaves no temporary file", async () => {
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

  it("pull does not overwrite a prompts.ts that pull did not write", async () => {
    const out = makeDirectory("pull")
    writeFileSync(join(out, typesFile), "export const mine = 1\n")
    expect(await pull(["--out", out])).toMatchObject({ code: 2, stderr: expect.stringContaining("--out") })
    expect(readdirSync(out)).toEqual([typesFile])
  })

  it("pull rejects a prompt that contains the API key, and writes nothing", async () => {
    const out = makeDirectory("pull")
    await api.sql("UPDATE prompts SET current_content = $1 WHERE id = $2", [`Use ${apiKey}`, template.id])
    try {
      const selection = ["--out", out, "--type", "template"]
      await expect.poll(async () => (await pull(selection)).code, { timeout: 20_000 }).toBe(1)
      const rejected = await pull(selection)
      expect(rejected.stderr).toContain(`Prompt ${template.id} contains the API key`)
    } finally {
      await api.sql("UPDATE prompts SET current_content = $1 WHERE id = $2", [
        template.current_content,
        template.id
      ])
    }
  })
})
