import { mkdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { findSlots } from "../../../src/domain/Resolution.ts"
import { verifyBundle } from "../../src/index.ts"
import type { FakeService } from "../../src/testing.ts"
import { key } from "../support.ts"
import { agent, bundleFile, prompts, startPullService, typesFile } from "./pullService.ts"

const success = { code: 0, stdout: "", stderr: "" }
const bothChanged = "prompts.bundle.json and prompts.ts changed\n"
const toFailure = (message: string) => ({
  code: 1,
  stdout: "",
  stderr: `prompt-retrieval-client: ${message}\n`
})

describe("pull", () => {
  it("pull writes every prompt, ordered by name, and a bundled result has the data and the version that the service returns", async () => {
    const { service, pull, read, readBundle, listFiles } = await startPullService(prompts)
    expect(await pull()).toEqual({ ...success, stdout: `232 prompts: ${bothChanged}` })
    expect(listFiles()).toEqual([bundleFile, typesFile])
    expect(service.requests).toEqual(
      [1, 2, 3].map((page) => `/api/v1/resolved?page=${page}&per_page=100&names=true`)
    )
    const bundle = await verifyBundle(readBundle())
    expect(bundle.prompts.map(({ name }) => name)).toEqual(prompts.map(({ name }) => name).toSorted())
    expect(bundle.prompts.find(({ id }) => id === agent.id)).toEqual({
      ...agent,
      target_model: "",
      slots: [...findSlots(agent.content)],
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/)
    })
    const client = service.connect()
    const bundled = client.withOptions({ bundle, mode: "bundle-first" })
    for (const { name } of prompts.slice(0, 3)) {
      const [fresh, result] = [
        await client.prompts.getResolved(name),
        await bundled.prompts.getResolved(name)
      ]
      expect([result.source, result.version, JSON.stringify(result)]).toEqual([
        "bundled",
        fresh.version,
        JSON.stringify(fresh)
      ])
    }
    const constant =
      'export const supportAgent = {\n  name: "support-agent",\n  type: "system",\n  slots: ["shop", "reader"]\n} as const'
    expect(read(typesFile)).toContain(`/** Support agent */\n${constant}\n`)
  })

  it("if nothing has changed, pull leaves both files untouched, and pull --check and pull --frozen exit with 0", async () => {
    const { pull, directory } = await startPullService()
    await pull(["--out", "generated"])
    const stat = () =>
      [bundleFile, typesFile].map((name) => {
        const { ino, mtimeMs } = statSync(join(directory, "generated", name))
        return [ino, mtimeMs]
      })
    const before = stat()
    const repeat = (...flags: ReadonlyArray<string>) => pull(["--out", "generated", ...flags])
    expect(await repeat()).toEqual({ ...success, stdout: "1 prompt: nothing changed\n" })
    expect(await repeat("--check")).toEqual({ ...success, stdout: "1 prompt: nothing differs\n" })
    expect(await repeat("--frozen")).toEqual(success)
    expect(stat()).toEqual(before)
  })

  it("pull sends the filters --tag and --type, and fails without --allow-empty if no prompt matches", async () => {
    const { service, pull, read, readBundle } = await startPullService(prompts)
    await pull(["--tag", "production", "--type=template"])
    expect(service.requests).toEqual([
      "/api/v1/resolved?page=1&per_page=100&tag=production&type=template&names=true"
    ])
    expect(readBundle().prompts.map(({ name }) => name)).toEqual(["announcement"])
    const none = ["--type", "few-shot"]
    for (const args of [none, [...none, "--check"]])
      expect(await pull(args)).toEqual(
        toFailure("no prompt matches; check --tag and --type, or allow it with --allow-empty")
      )
    expect(await pull([...none, "--allow-empty"])).toEqual({
      ...success,
      stdout: `0 prompts: ${bothChanged}`
    })
    expect(read(typesFile)).toMatch(/\nexport \{\}\n$/)
    expect((await verifyBundle(readBundle())).prompts).toEqual([])
  })

  it("pull --check prints the names of the prompts that were changed, added, removed or renamed, exits with 1 and writes nothing", async () => {
    const { service, pull, read } = await startPullService(prompts)
    await pull()
    const before = [read(bundleFile), read(typesFile)]
    service.set({ ...agent, content: "You are a support agent of {{store}}." })
    service.set({ name: "prompt-0", content: "Content 0", version: 2 })
    service.remove("announcement")
    service.set({ name: "zebra", content: "New" })
    expect(await pull(["--check"])).toEqual({
      ...toFailure(
        "the service differs from prompts.bundle.json and prompts.ts; run 'pull' and review the change"
      ),
      stdout: "announcement\nprompt-0\nsupport-agent\nzebra\n"
    })
    expect([read(bundleFile), read(typesFile)]).toEqual(before)
    expect(await pull()).toEqual({ ...success, stdout: `232 prompts: ${bothChanged}` })
    service.set({ name: "zebra", content: "Changed" })
    expect(await pull(["--check"])).toMatchObject({
      stdout: "zebra\n",
      stderr: expect.stringContaining("differs from prompts.bundle.json; run")
    })
  })

  it("pull --frozen needs neither a request nor a key, and fails if a file is damaged or missing", async () => {
    const { pull, read, write, directory } = await startPullService()
    await pull()
    const offline = { PROMPT_RETRIEVAL_KEY: "", PROMPT_RETRIEVAL_URL: "http://127.0.0.1:1" }
    const frozen = () => pull(["--frozen"], offline)
    expect(await frozen()).toEqual(success)
    const [bundle, types] = [read(bundleFile), read(typesFile)]
    write(bundleFile, bundle.replaceAll("\n", "\r\n"))
    write(typesFile, types.replaceAll("\n", "\r\n"))
    expect(await frozen()).toEqual(success)
    write(bundleFile, bundle.replace("Be brief", "Be rude"))
    expect(await frozen()).toMatchObject({ code: 1, stderr: expect.stringContaining(agent.id) })
    write(bundleFile, bundle)
    write(typesFile, types.replace('"shop"', '"shops"'))
    const mismatch = "prompts.ts does not belong to prompts.bundle.json; run 'pull' again"
    expect(await frozen()).toEqual(toFailure(mismatch))
    rmSync(join(directory, bundleFile))
    expect(await frozen()).toEqual(
      toFailure("there is no prompts.bundle.json in the directory of --out; run 'pull'")
    )
  })

  it("pull writes neither file if one of the files cannot be written, and leaves no temporary file", async () => {
    const { pull, read, write, listFiles, directory } = await startPullService()
    write(bundleFile, "old")
    mkdirSync(join(directory, typesFile))
    const failed = await pull()
    expect(failed).toMatchObject({ code: 1, stdout: "" })
    expect(failed.stderr).toMatch(/^prompt-retrieval-client: [^\n]+\n$/)
    expect(listFiles()).toEqual([bundleFile, typesFile])
    expect(read(bundleFile)).toBe("old")
  })

  it("pull does not overwrite a prompts.ts that pull did not write", async () => {
    const { service, pull, write, listFiles } = await startPullService()
    write(typesFile, "export const mine = 1\n")
    expect(await pull()).toMatchObject({ code: 2, stderr: expect.stringContaining("--out") })
    expect(listFiles()).toEqual([typesFile])
    expect(service.requests).toEqual([])
  })

  const toInvalid = (name: string) => `the service returned an invalid prompt ${name}; check --base-url`
  it.each([
    [
      "whose text contains the API key",
      { content: `Use ${key}` },
      "the prompt support-agent contains the API key, which no file may contain; remove it and revoke the key"
    ],
    ["with an invalid name", { name: "a = 1; x" }, toInvalid("a = 1; x")],
    ["with an invalid title", { title: 1 as never }, toInvalid("support-agent")],
    ["with an invalid count", { fragment_count: "1" as never }, toInvalid("support-agent")]
  ])("pull rejects a prompt %s, and writes nothing", async (_, change, message) => {
    const { pull, listFiles } = await startPullService([{ ...agent, ...change }])
    expect(await pull()).toEqual(toFailure(message))
    expect(listFiles()).toEqual([])
  })

  it.each<[event: string, change: (service: FakeService) => void]>([
    // The fake lists prompts in the order in which they were added, so a removed prompt moves the others.
    ["is deleted", (service) => service.remove("prompt-0")],
    [
      "moves to another page",
      (service) => {
        service.remove("prompt-199")
        service.set({ name: "new", content: "New" })
        service.remove("prompt-5")
      }
    ]
  ])("if a prompt %s while the list is read, pull reads the list again", async (_, change) => {
    let isChanged = false
    const { service, pull, readBundle } = await startPullService(prompts, ({ url }) => {
      if (!isChanged && url!.includes("page=2")) {
        isChanged = true
        change(service)
      }
      return false
    })
    expect(await pull()).toEqual({ ...success, stdout: `231 prompts: ${bothChanged}` })
    expect(service.requests).toHaveLength(6)
    expect(readBundle().prompts.some(({ name }) => name === "prompt-98")).toBe(true)
  })
})
