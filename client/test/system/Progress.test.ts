import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { newId } from "../../../test/support/archives.ts"
import { makeDirectory, removeDirectories } from "../../../test/support/programs/packages.ts"
import { FakeService } from "../../src/testing.ts"
import { rateLimited } from "../support.ts"
import { serveFake } from "../serveFake.ts"

afterAll(removeDirectories)

const main = join(import.meta.dirname, "../../src/pull/main.ts")

/** Runs a program on a new terminal of 80 columns, copies its output, and exits with its exit code. */
const runOnTerminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"

/** Runs `pull` on a terminal. Returns the exit code and the lines that it has drawn, in order. */
const pullOnTerminal = async (url: string) => {
  const args = [process.execPath, main, "pull", "--out", makeDirectory("progress")]
  const child = spawn("python3", ["-c", runOnTerminal, ...args], {
    env: { PATH: process.env.PATH, PROMPT_RETRIEVAL_KEY: "key_live_0", PROMPT_RETRIEVAL_URL: url },
    stdio: ["ignore", "pipe", "inherit"]
  })
  let output = ""
  child.stdout.on("data", (chunk) => (output += chunk))
  const [code] = (await once(child, "close")) as [number]
  return { code, lines: output.split("\r\x1b[K") }
}

const service = new FakeService({
  prompts: Array.from({ length: 3 }, () => ({ id: newId<string>(), content: "Hi" }))
})

it("on a terminal, pull shows its progress, and removes the progress before it prints the summary", async () => {
  const server = await serveFake(service)
  try {
    const { code, lines } = await pullOnTerminal(server.url)
    expect(code).toBe(0)
    expect(lines.slice(0, 3)).toEqual(["", "Listing prompts", "Reading prompts: 0 of 3"])
    // The number of further lines depends on how long the requests take.
    for (const line of lines.slice(3, -1)) expect(line).toMatch(/^Reading prompts: [123] of 3$/)
    expect(lines.at(-1)).toBe("3 prompts: 3 added\r\n")
  } finally {
    await server.close()
  }
})

it("pull shows on a terminal that the rate limit delays its requests", async () => {
  let requests = 0
  const server = await serveFake(service, (_, response) => {
    // The second request reads the first prompt.
    if (++requests !== 2) return false
    const { status, headers } = rateLimited("1")
    const error = { code: "RATE_LIMITED", message: "Rate limit exceeded" }
    response.writeHead(status, Object.fromEntries(headers)).end(JSON.stringify({ error }))
    return true
  })
  try {
    const { code, lines } = await pullOnTerminal(server.url)
    expect(code).toBe(0)
    expect(lines).toContainEqual(
      expect.stringMatching(/^Reading prompts: \d of 3; the rate limit delays the next requests by 1 s$/)
    )
    expect(lines.at(-1)).toBe("3 prompts: 3 added\r\n")
  } finally {
    await server.close()
  }
})
