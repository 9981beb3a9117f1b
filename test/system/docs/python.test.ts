import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { describe, expect, it, onTestFinished } from "vitest"
import { makeDemoTenant } from "../../api/startApi.ts"
import { programPath } from "../../support/programs/programs.ts"
import { runService, startService, unlimited } from "../../support/service.ts"
import { makeAcquire, makeTestDatabase } from "../../support/testDatabase.ts"

const examples = join(import.meta.dirname, "../../../examples")

/** Reads names from standard input, and prints the prompt or the error for each name. */
const script = `
import json, sys
from prompts import Prompts, PromptError, PromptUnavailable, fill_slots
prompts = Prompts(sys.argv[1], sys.argv[2], max_age=float(sys.argv[3]))
for line in sys.stdin:
    try:
        prompt = prompts.get_resolved(line.strip())
        result = {"id": prompt["id"], "text": fill_slots(prompt["resolved_content"], {"shop": "Acme", "who": "x"})}
    except PromptError as error:
        result = {"status": error.status, "code": error.code}
    except PromptUnavailable as error:
        result = {"retry_after": error.retry_after}
    print(json.dumps(result), flush=True)
`

describe("examples/prompts.py", () => {
  const { archive, key } = makeDemoTenant()
  const { env, sql } = makeTestDatabase([archive])
  const agent = archive.prompts.find(({ title }) => title === "Support agent")!

  /** Starts a Python program that uses the example. Returns a function that reads a prompt in this program. */
  const startReader = (url: string, maxAge: number) => {
    const child = spawn("python3", ["-c", script, url, key, String(maxAge)], {
      env: { PATH: programPath, PYTHONPATH: examples, PYTHONDONTWRITEBYTECODE: "1" },
      stdio: ["pipe", "pipe", "inherit"]
    })
    onTestFinished(async () => {
      child.stdin.end()
      if (child.exitCode === null) await once(child, "exit")
    })
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
    return async (name: string) => {
      child.stdin.write(`${name}\n`)
      return JSON.parse((await lines.next()).value as string)
    }
  }

  const acquire = makeAcquire()
  const start = (settings: Readonly<Record<string, string>>) =>
    acquire(runService(() => startService({ ...env, ...settings })))

  it("the recipe reads prompts by name, fills slots, checks its cache with ETags, and serves known prompts during an outage", async () => {
    const service = await start(unlimited)
    const [fresh, cached] = [startReader(service.url, 0), startReader(service.url, 3_600)]
    const first = await fresh("support-agent")
    const text = expect.stringMatching(/^You are a support agent of Acme\. /)
    expect(first).toEqual({ id: agent.id, text })
    for (const read of [cached, fresh]) expect(await read("support-agent")).toEqual(first)
    expect(service.output()).toContain('"status":304')
    for (const name of ["no-such prompt/x", "no-such-prompt"])
      expect(await fresh(name)).toEqual({ status: 404, code: "NOT_FOUND" })

    await sql("update prompts set current_content = 'For {{ who }}, {{else}}' where id = $1", [agent.id])
    const edited = { id: agent.id, text: expect.stringMatching(/^For x, \{\{else\}\}\n/) }
    await expect.poll(() => fresh("support-agent")).toEqual(edited)

    await service.stop()
    expect(await fresh("support-agent")).toEqual(edited)
    expect(await fresh("other")).toEqual({ retry_after: expect.any(Number) })
    expect(await cached("support-agent")).toEqual(first)
  })

  it("after 429, the recipe serves known prompts and sends no request before the time of Retry-After", async () => {
    const service = await start({ RATE_LIMIT_PER_KEY: "1", RATE_LIMIT_PER_PROCESS: "100" })
    const read = startReader(service.url, 0)
    const known = await read("support-agent")
    // The window may end between the first two requests.
    const countRejections = () => service.output().split('"status":429').length - 1
    await expect
      .poll(async () => {
        expect(await read("support-agent")).toEqual(known)
        return countRejections()
      })
      .toBe(1)
    const unknown = await read("other")
    expect(unknown.retry_after).toBeGreaterThan(0)
    expect(unknown.retry_after).toBeLessThanOrEqual(61)
    expect(countRejections()).toBe(1)
  })
})
