import { expect, it } from "vitest"
import { run } from "../support/service.ts"

it("the stack trace of a crash names the source files of the program", async () => {
  const script = `process.stderr.on = () => { throw new Error("broken") }`
  const { code, stderr } = await run(["--help"], {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}`
  })
  expect(code).toBe(1)
  expect(stderr).toMatch(/^ +at main \(file:.*\/src\/runtime\/CommandLine\.ts:\d+:\d+\)$/m)
})
