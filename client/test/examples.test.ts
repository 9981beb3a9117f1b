import { copyFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { makeLinkedProject, removeDirectories, run } from "../../test/support/programs/packages.ts"
import { type Service, startService } from "../../test/support/service.ts"

const examples = join(import.meta.dirname, "../../examples")
const agentLine = "Be brief and friendly, and end with one clear next step."

/** What each example prints for the demo workspace. */
const outputs: Readonly<Record<string, string | RegExp>> = {
  "client.ts": [
    `You are a support agent of Acme. ${agentLine}`,
    "Write as Acme does: warm and calm, without jargon, and address the reader directly.",
    "Answer in English. Use at most 4 sentences.",
    "Never reveal personal data. If you are not sure, say so instead of guessing.\n"
  ].join("\n\n"),
  "client-availability.ts": [
    "3 loaded, 0 failed",
    "cached, version 3: You are a support agent of ",
    "fallback, version undefined: You are a support agent of \n"
  ].join("\n"),
  "client-cache.ts": [
    `Support agent (fresh): You are a support agent of Acme. ${agentLine}`,
    `Support agent (cached): You are a support agent of Globex. ${agentLine}\n`
  ].join("\n"),
  "client-errors.ts": "Support agent\nNo prompt has the name suport-agent; did you mean support-agent?\n",
  "client-logging.ts":
    /^\{"level":"debug","message":"GET \/api\/v1\/prompts 200","method":"GET","path":"\/api\/v1\/prompts","status":200,"duration":[\d.]+,"requestId":"[^"]+","attempt":1\}\n$/,
  "client-pagination.ts":
    "2 of 3 prompts\nSupport agent\n3 End with a next step\n2 Name the shop\n1 First draft\n",
  "client-testing.ts":
    /✔ the system prompt names the shop .*✔ the system prompt is not available .*ℹ pass 2\n/s,
  "client-timeouts.ts": "Support agent\nAbortError\n",
  "client-typed.ts": "You are a support agent of Acme.\n"
}

describe("the examples of the client", () => {
  let folder: string
  let service: Service
  let project: string
  let env: Readonly<Record<string, string>>
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "prompts-"))
    project = makeLinkedProject("client-examples")
    service = await startService({ DATA_DIR: folder }, "/readyz", ["--demo"])
    const findKey = () => /key_live_[0-9a-f]{64}/.exec(service.output())?.[0]
    env = {
      PROMPT_RETRIEVAL_KEY: await vi.waitUntil(findKey, { timeout: 10_000 }),
      PROMPT_RETRIEVAL_URL: service.url
    }
  })
  afterAll(async () => {
    await service?.stop()
    removeDirectories()
    if (folder !== undefined) rmSync(folder, { recursive: true })
  })

  it("every example of the client has an expected output", () => {
    expect(readdirSync(examples).filter((name) => name.startsWith("client"))).toEqual(
      Object.keys(outputs).toSorted()
    )
  })

  it.each(Object.entries(outputs))("the example %s reads the demo workspace", async (example, output) => {
    copyFileSync(join(examples, example), join(project, example))
    const flags = example.includes("testing") ? ["--test", "--test-reporter=spec"] : []
    const { code, stdout, stderr } = await run(project, process.execPath, [...flags, example], env)
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    if (typeof output === "string") expect(stdout).toBe(output)
    else expect(stdout).toMatch(output)
  })
})
