import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { searchForLeaks } from "./leaks.ts"
import { freePort } from "./ports.ts"

const main = join(import.meta.dirname, "../../src/main.ts")

/** How long a start may take on a busy machine, the making of an embedded database included, in milliseconds. */
const startDeadline = 40_000

/** A real process of the service, listening. */
export interface Service {
  readonly url: string
  readonly port: number
  readonly process: ChildProcess
  /** Everything written so far, stdout and stderr. */
  readonly output: () => string
  /** Ends it as an operator would, and gives its exit code; what it wrote is searched for leaks. */
  readonly stop: () => Promise<number | null>
}

const collect = (child: ChildProcess) => {
  let text = ""
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (chunk) => (text += chunk))
  return () => text
}

/** The environment of a child process: nothing of the one that runs the tests but where programs are found. */
const environmentOf = (env: Readonly<Record<string, string>>) => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  ...env
})

const isOk = async (url: string): Promise<boolean> => {
  try {
    const response = await fetch(url)
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}

/**
 * Starts `serve`, on a free port unless `PORT` is given, and waits until it is ready, or until it only listens where its database is meant to be
 * away; fails with what it said if it ends before.
 */
export const startService = async (
  env: Readonly<Record<string, string>>,
  until: "/readyz" | "/healthz" = "/readyz"
): Promise<Service> => {
  const port = env.PORT === undefined ? await freePort() : Number(env.PORT)
  const url = `http://127.0.0.1:${port}`
  const child = spawn(process.execPath, [main, "serve"], {
    env: environmentOf({ PORT: String(port), LOG_FORMAT: "json", ...env }),
    stdio: ["ignore", "pipe", "pipe"]
  })
  const output = collect(child)
  const exited = once(child, "close") as Promise<[number | null]>
  const deadline = Date.now() + startDeadline
  while (!(await isOk(url + until))) {
    if (child.exitCode !== null) throw new Error(`the service ended: ${output()}`)
    if (Date.now() > deadline) {
      child.kill("SIGKILL")
      throw new Error(`the service did not listen in time: ${output()}`)
    }
    await setTimeout(20)
  }
  return {
    url,
    port,
    process: child,
    output,
    stop: async () => {
      child.kill("SIGTERM")
      const [code] = await exited
      searchForLeaks(output())
      return code
    }
  }
}

/** What a command printed, and how it ended. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs one command of the command line to its end. */
export const run = async (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  input = ""
): Promise<Ran> => {
  const child = spawn(process.execPath, [main, ...args], { env: environmentOf(env), stdio: "pipe" })
  let stdout = ""
  let stderr = ""
  child.stdout.on("data", (chunk) => (stdout += chunk))
  child.stderr.on("data", (chunk) => (stderr += chunk))
  child.stdin.on("error", () => {})
  child.stdin.end(input)
  const [code] = (await once(child, "close")) as [number | null]
  return { code, stdout, stderr }
}
