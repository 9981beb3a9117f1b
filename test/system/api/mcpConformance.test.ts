import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { parse, stringify } from "yaml"
import { startApi } from "../../api/startApi.ts"
import { makeTenant, prompt } from "../../support/archives.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { forwardingProxy } from "../../support/network/forwardingProxy.ts"
import { run } from "../../support/programs/packages.ts"
import { toolsDirectory } from "../../support/programs/tools.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

/** A workspace with the prompts that the scenarios of the suite use. */
const { key, archive } = makeTenant({
  prompts: [
    prompt({
      title: "test_simple_prompt",
      current_content: "This is a simple prompt for testing.",
      prompt_type: "user"
    }),
    prompt({
      title: "test_prompt_with_arguments",
      current_content: "Prompt with arguments: arg1='{{arg1}}', arg2='{{arg2}}'",
      prompt_type: "user"
    })
  ]
})
const expectedFailures = parse(
  readFileSync(join(import.meta.dirname, "mcp-expected-failures.yaml"), "utf8")
) as Readonly<Record<string, ReadonlyArray<string>>>
const api = startApi([archive], { env: { MCP: "on" } })
const acquire = makeAcquire()

// The suite fails if an unlisted check fails or a listed check passes.
it.each(["2025-11-25", "2026-07-28"])(
  "the MCP conformance suite reports only expected failures for protocol version %s",
  async (version) => {
    const directory = makeTestDirectory("conformance-")
    const expected = [...expectedFailures.both!, ...expectedFailures[version]!]
    writeFileSync(join(directory, "expected.yaml"), stringify({ server: expected }))
    // The suite cannot send a key, so the proxy adds the key.
    const authorization = `Bearer ${key.plaintext}`
    const port = await acquire(
      forwardingProxy(api.service(), { request: (headers) => ({ ...headers, authorization }) })
    )
    const { code, stdout, stderr } = await run(directory, process.execPath, [
      join(toolsDirectory, "node_modules/.bin/conformance"),
      "server",
      ...["--url", `http://127.0.0.1:${port}/mcp`],
      ...["--requirements", version],
      ...["--expected-failures", "expected.yaml"]
    ])
    expect(code, stdout + stderr).toBe(0)
    // The suite ignores entries for unknown scenarios and checks, so the test expects the suite to print every entry.
    for (const entry of expected) expect(stdout).toContain(`~ ${entry}`)
  },
  180_000
)
