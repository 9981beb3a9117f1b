import { spawn } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, it } from "vitest"
import { startDemoApi } from "../../test/api/startApi.ts"
import { makeLinkedProject, run } from "../../test/support/programs/packages.ts"

const examples = join(import.meta.dirname, "../../examples")
const agentLine = "Be brief and friendly, and end with one clear next step."

/** An example that runs until it is stopped. */
const liveExample = "client-live.ts"

/** The output of each example for the demo workspace. */
const outputs: Readonly<Record<string, string | RegExp>> = {
  "client.ts":
    /^You are a support agent of Acme\. .*\n\nWrite as Acme does: .*\n\nAnswer in English\. .*\n\nNever reveal .*\n$/,
  "client-availability.ts": [
    "3 loaded",
    "cached, version 3: You are a support agent of ",
    "fallback, version undefined: You are a support agent of \n"
  ].join("\n"),
  "client-cache.ts": [
    `Support agent (fresh): You are a support agent of Acme. ${agentLine}`,
    `Support agent (cached): You are a support agent of Globex. ${agentLine}\n`
  ].join("\n"),
  "client-errors.ts": "Prompt not found\n",
  "client-logging.ts":
    /^\{"level":"debug","message":"GET \/api\/v1\/prompts 200","method":"GET","path":"\/api\/v1\/prompts","status":200,"duration":[\d.]+,"requestId":"[^"]+","attempt":1\}\n$/,
  "client-pagination.ts":
    "2 of 3 prompts\nSupport agent\n3 End with a next step\n2 Name the shop\n1 First draft\n",
  "client-testing.ts":
    /✔ the system prompt names the shop .*✔ the system prompt is not available .*ℹ pass 2\n/s,
  "client-timeouts.ts": "Support agent\nAbortError\n",
  "client-typed.ts": "You are a support agent of Acme.\n"
}

const api = startDemoApi()
let project: string
beforeAll(() => {
  project = makeLinkedProject("client-examples")
})

it("every example of the client has an expected output", () => {
  expect(readdirSync(examples).filter((name) => name.startsWith("client"))).toEqual(
    [...Object.keys(outputs), liveExample].toSorted()
  )
})

it.each(Object.entries(outputs))("the example %s prints the expected output", async (example, output) => {
  const env = { PROMPT_RETRIEVAL_KEY: api.key, PROMPT_RETRIEVAL_URL: api.service().url }
  copyFileSync(join(examples, example), join(project, example))
  const flags = example.includes("testing") ? ["--test", "--test-reporter=spec"] : []
  const { code, stdout, stderr } = await run(project, process.execPath, [...flags, example], env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  if (typeof output === "string") expect(stdout).toBe(output)
  else expect(stdout).toMatch(output)
})

// This test edits a prompt, so the test must be the last.
it("the example client-live.ts prints the new text of a prompt after an edit", async () => {
  copyFileSync(join(examples, liveExample), join(project, liveExample))
  const child = spawn(process.execPath, [liveExample], {
    cwd: project,
    env: { ...process.env, PROMPT_RETRIEVAL_KEY: api.key, PROMPT_RETRIEVAL_URL: api.service().url },
    stdio: ["ignore", "pipe", "inherit"]
  })
  let stdout = ""
  child.stdout.on("data", (chunk) => (stdout += chunk))
  try {
    const line = (text: string) => `support-agent, version 3, live: ${text}\n`
    const first = line(`You are a support agent of {{shop}}. ${agentLine}`)
    await expect.poll(() => stdout).toBe(first)
    await api.sql("update prompts set current_content = 'New text' where slug = 'support-agent'")
    await expect.poll(() => stdout, { timeout: 50_000 }).toBe(first + line("New text"))
  } finally {
    child.kill()
    await once(child, "close")
  }
})
