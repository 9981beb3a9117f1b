import { once } from "node:events"
import { setTimeout } from "node:timers/promises"
import { expect, it } from "vitest"
import { run, startService } from "../../support/service.ts"

const unreachable = "postgres://postgres@127.0.0.1:9/none"

it.each(["597 hours", "30 days", "2147483648 millis", "100000 weeks"])(
  "SHUTDOWN_GRACE=%s is refused at the start because no timer holds it",
  async (grace) => {
    expect(await run(["serve"], { DATABASE_URL: unreachable, PORT: "0", SHUTDOWN_GRACE: grace })).toEqual({
      code: 1,
      stdout: "",
      stderr: "prompt-retrieval: SHUTDOWN_GRACE must be at most 596 hours\n"
    })
  }
)

it("SHUTDOWN_GRACE=596 hours keeps the service accepting after SIGTERM", async () => {
  const env = { DATABASE_URL: unreachable, SHUTDOWN_GRACE: "596 hours" }
  const service = await startService(env, "/healthz")
  const exited = once(service.process, "exit")
  service.process.kill("SIGTERM")
  await setTimeout(1_000)
  expect(service.process.exitCode).toBeNull()
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
  service.process.kill("SIGTERM")
  expect(await exited).toEqual([143, null])
  expect(service.output()).not.toContain("TimeoutOverflowWarning")
}, 60_000)
