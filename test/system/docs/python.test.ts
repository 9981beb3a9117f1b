import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { expect, it, onTestFinished } from "vitest"
import { FakeService } from "../../../client/src/testing.ts"
import { serveFake } from "../../../client/test/serveFake.ts"
import { startDemoApi } from "../../api/startApi.ts"
import { programPath } from "../../support/programs/startProgram.ts"

const examples = join(import.meta.dirname, "../../../examples")

/** Reads the name in each line of stdin. Prints the prompt or the error. */
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

const { key, archive, service, sql } = startDemoApi()
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

it("examples/prompts.py reads prompts by name, fills slots, revalidates its cache with ETags, and returns cached prompts during an outage", async () => {
  const { url, output, stop } = service()
  const [fresh, cached] = [startReader(url, 0), startReader(url, 3_600)]
  const first = await fresh("support-agent")
  const text = expect.stringMatching(/^You are a support agent of Acme\. /)
  expect(first).toEqual({ id: agent.id, text })
  for (const read of [cached, fresh]) expect(await read("support-agent")).toEqual(first)
  expect(output()).toContain('"status":304')
  for (const name of ["no-such prompt/x", "no-such-prompt"])
    expect(await fresh(name)).toEqual({ status: 404, code: "NOT_FOUND" })

  await sql("update prompts set current_content = 'For {{ who }}, {{else}}' where id = $1", [agent.id])
  const edited = { id: agent.id, text: expect.stringMatching(/^For x, \{\{else\}\}\n/) }
  await expect.poll(() => fresh("support-agent")).toEqual(edited)

  await stop()
  expect(await fresh("support-agent")).toEqual(edited)
  expect(await fresh("other")).toEqual({ retry_after: expect.any(Number) })
  expect(await cached("support-agent")).toEqual(first)
})

it.each([429, 302])(
  "after the status %i, examples/prompts.py returns cached prompts, even without an ETag, and sends no request until Retry-After has elapsed",
  async (status) => {
    let requests = 0
    const url = await serveFake(new FakeService(), (_, response) => {
      if (++requests > 1) response.writeHead(status, { "retry-after": "600", location: "/login" })
      response.end('{"data":{"id":"p","resolved_content":"Text"}}')
      return true
    })
    const read = startReader(url, 0)
    for (const _ of [1, 2, 3]) expect(await read("known")).toEqual({ id: "p", text: "Text" })
    const { retry_after } = await read("other")
    expect(retry_after).toBeGreaterThan(60)
    expect(retry_after).toBeLessThanOrEqual(601)
    expect(requests).toBe(2)
  }
)
