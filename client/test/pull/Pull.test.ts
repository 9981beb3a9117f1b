import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeTestDirectory } from "../../../test/support/testDirectory.ts"
import { findSlots } from "../../../src/domain/Resolution.ts"
import { verifyBundle } from "../../src/index.ts"
import type { FakeService } from "../../src/testing.ts"
import {
  agent,
  apiKey,
  bundleFile,
  others,
  readBoth,
  readBundle,
  readText,
  startPullService,
  template,
  typesFile
} from "./pullService.ts"

const success = { code: 0, stdout: "", stderr: "" }
const bothChanged = "prompts.bundle.json and prompts.ts changed\n"

describe("pull", () => {
  it("pull reads 100 prompts per request, and writes every prompt with the fields that the service returns, ordered by name", async () => {
    const { service, pull } = await startPullService()
    const out = join(makeTestDirectory("pull-"), "generated")
    expect(await pull(["--out", out])).toEqual({ ...success, stdout: `232 prompts: ${bothChanged}` })
    expect(readdirSync(out).toSorted()).toEqual([bundleFile, typesFile])
    expect(service.requests).toEqual(
      [1, 2, 3].map((page) => `/api/v1/resolved?page=${page}&per_page=100&names=true`)
    )
    const bundle = await verifyBundle(readBundle(out))
    expect(bundle.prompts.map(({ name }) => name)).toEqual(
      [agent, template, ...others].map(({ name }) => name).toSorted()
    )
    expect(bundle.prompts.find(({ id }) => id === agent.id)).toEqual({
      ...agent,
      target_model: "",
      slots: [...findSlots(agent.content)],
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/)
    })
    const constant =
      'export const supportAgent = {\n  name: "support-agent",\n  type: "system",\n  slots: ["shop", "reader"]\n} as const'
    expect(readText(out, typesFile)).toContain(`/** Support agent */\n${constant}\n`)
  })

  it("if nothing has changed, pull leaves both files untouched, and pull --check and pull --frozen exit with 0", async () => {
    const { pull } = await startPullService()
    const out = makeTestDirectory("pull-")
    await pull(["--out", out])
    const stat = () => [bundleFile, typesFile].map((name) => statSync(join(out, name)))
    const before = stat()
    expect(await pull(["--out", out])).toEqual({ ...success, stdout: "232 prompts: nothing changed\n" })
    const unchanged = { ...success, stdout: "232 prompts: nothing differs\n" }
    expect(await pull(["--out", out, "--check"])).toEqual(unchanged)
    expect(await pull(["--out", out, "--frozen"])).toEqual(success)
    expect(stat().map(({ ino, mtimeMs }) => [ino, mtimeMs])).toEqual(
      before.map(({ ino, mtimeMs }) => [ino, mtimeMs])
    )
  })

  it("pull sends the filters --tag and --type, and fails without --allow-empty if no prompt matches", async () => {
    const { service, pull } = await startPullService()
    const out = makeTestDirectory("pull-")
    await pull(["--out", out, "--tag", "production", "--type=template"])
    expect(service.requests).toEqual([
      "/api/v1/resolved?page=1&per_page=100&tag=production&type=template&names=true"
    ])
    expect(readBundle(out).prompts.map(({ name }) => name)).toEqual(["announcement"])
    const none = ["--out", out, "--type", "few-shot"]
    for (const args of [none, [...none, "--check"]]) {
      expect(await pull(args)).toMatchObject({
        code: 1,
        stdout: "",
        stderr:
          "prompt-retrieval-client: no prompt matches; check --tag and --type, or allow it with --allow-empty\n"
      })
    }
    expect(await pull([...none, "--allow-empty"])).toMatchObject({
      code: 0,
      stdout: `0 prompts: ${bothChanged}`
    })
    expect(readText(out, typesFile)).toMatch(/\nexport \{\}\n$/)
    expect((await verifyBundle(readBundle(out))).prompts).toEqual([])
  })

  it("pull --check prints the names of the prompts that were changed, added, removed or renamed, exits with 1 and writes nothing", async () => {
    const { service, pull } = await startPullService()
    const out = makeTestDirectory("pull-")
    await pull(["--out", out])
    const before = readBoth(out)
    service.set({ ...agent, content: "You are a support agent of {{store}}." })
    service.set({ ...others[0]!, version: 2 })
    service.set({ ...others[1]!, name: "renamed", title: "Renamed" })
    service.remove(template.id)
    service.set({ name: "zebra", content: "New" })
    expect(await pull(["--out", out, "--check"])).toEqual({
      code: 1,
      stdout: "announcement\nprompt-0\nprompt-1\nrenamed\nsupport-agent\nzebra\n",
      stderr:
        "prompt-retrieval-client: the service differs from prompts.bundle.json and prompts.ts; run 'pull' and review the change\n"
    })
    expect(readBoth(out)).toEqual(before)
    expect(await pull(["--out", out])).toMatchObject({ code: 0, stdout: `232 prompts: ${bothChanged}` })
    expect(await pull(["--out", out, "--check"])).toMatchObject({ code: 0, stderr: "" })
    service.set({ ...others[2]!, content: "Changed" })
    expect(await pull(["--out", out, "--check"])).toMatchObject({
      stdout: "prompt-2\n",
      stderr: expect.stringContaining("differs from prompts.bundle.json; run")
    })
  })

  it("pull --frozen sends no request, needs no key, and fails if a file is damaged or missing; the error for a damaged prompt contains the prompt's id", async () => {
    const { pull } = await startPullService({ prompts: [agent] })
    const out = makeTestDirectory("pull-")
    await pull(["--out", out])
    const offline = { PROMPT_RETRIEVAL_KEY: "", PROMPT_RETRIEVAL_URL: "http://127.0.0.1:1" }
    const frozen = () => pull(["--out", out, "--frozen"], offline)
    expect(await frozen()).toEqual(success)
    const [bundle, types] = readBoth(out)
    for (const [name, text] of [
      [bundleFile, bundle],
      [typesFile, types]
    ] as const)
      writeFileSync(join(out, name), text!.replaceAll("\n", "\r\n"))
    expect(await frozen(), "with Windows line endings").toEqual(success)
    writeFileSync(join(out, typesFile), types!)
    writeFileSync(join(out, bundleFile), bundle!.replace("Be brief", "Be rude"))
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

  it("pull writes neither file if one of the files cannot be written, and leaves no temporary file", async () => {
    const { pull } = await startPullService({ prompts: [agent] })
    const out = makeTestDirectory("pull-")
    mkdirSync(join(out, bundleFile))
    expect(await pull(["--out", out])).toMatchObject({ code: 1, stdout: "" })
    expect(readdirSync(out)).toEqual([bundleFile])
    rmSync(join(out, bundleFile), { recursive: true })
    writeFileSync(join(out, bundleFile), "old")
    mkdirSync(join(out, typesFile))
    const failed = await pull(["--out", out])
    expect(failed).toMatchObject({ code: 1, stdout: "" })
    expect(failed.stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
    expect(readdirSync(out).toSorted()).toEqual([bundleFile, typesFile])
    expect(readText(out, bundleFile)).toBe("old")
  })

  it("pull does not overwrite a prompts.ts that pull did not write", async () => {
    const { service, pull } = await startPullService({ prompts: [agent] })
    const out = makeTestDirectory("pull-")
    writeFileSync(join(out, typesFile), "export const mine = 1\n")
    expect(await pull(["--out", out])).toMatchObject({ code: 2, stderr: expect.stringContaining("--out") })
    expect(readdirSync(out)).toEqual([typesFile])
    expect(service.requests).toEqual([])
  })

  it("pull rejects a prompt that contains the API key, and writes nothing", async () => {
    const { pull } = await startPullService({ prompts: [{ ...agent, content: `Use ${apiKey}` }] })
    const out = makeTestDirectory("pull-")
    const rejected = await pull(["--out", out])
    expect(rejected).toMatchObject({ code: 1, stdout: "" })
    expect(rejected.stderr).toContain("the prompt support-agent contains the API key")
    expect(readdirSync(out)).toEqual([])
  })

  it("if a prompt moves to another page or is deleted while the list is read, pull reads the list again", async () => {
    for (const change of [
      // The fake lists prompts in the order in which they were added, so a removed prompt moves the others.
      ({ service }: { readonly service: FakeService }) => service.remove("prompt-0"),
      ({ service }: { readonly service: FakeService }) => {
        service.remove("prompt-199")
        service.set({ name: "new", content: "New" })
        service.remove("prompt-5")
      }
    ]) {
      let isChanged = false
      const started = await startPullService(undefined, ({ url }) => {
        if (isChanged || !url!.includes("page=2")) return false
        isChanged = true
        change(started)
        return false
      })
      const out = makeTestDirectory("pull-")
      expect(await started.pull(["--out", out])).toMatchObject({
        code: 0,
        stdout: `231 prompts: ${bothChanged}`
      })
      expect(started.service.requests).toHaveLength(6)
      expect(readBundle(out).prompts.some(({ name }) => name === "prompt-98")).toBe(true)
    }
  })

  it("pull rejects a prompt whose name or fields are invalid, and writes nothing", async () => {
    for (const prompt of [
      { ...agent, name: "a = 1; x" },
      { ...agent, title: 1 as never },
      { ...agent, fragment_count: "1" as never }
    ]) {
      const { pull } = await startPullService({ prompts: [prompt] })
      const out = makeTestDirectory("pull-")
      expect(await pull(["--out", out])).toMatchObject({
        code: 1,
        stdout: "",
        stderr: `prompt-retrieval-client: the service returned an invalid prompt ${prompt.name}; check --base-url\n`
      })
      expect(readdirSync(out)).toEqual([])
    }
  })
})
