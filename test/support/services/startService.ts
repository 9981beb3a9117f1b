import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { freePort } from "../network/ports.ts"
import { startUntilReady } from "../programs/startProgram.ts"
import { searchForLeaks } from "./secrets.ts"

/** The program of this checkout, from its sources. */
export const sourceProgram = join(import.meta.dirname, "../../../src/main.ts")

/** The program of this checkout: the bundle of `bundleProgram.ts` in vitest, and the sources outside of vitest. */
export const currentProgram = process.env.TEST_PROGRAM ?? sourceProgram

/** Rate limits that no test reaches. */
export const unlimited = { RATE_LIMIT_PER_KEY: "100000000", RATE_LIMIT_PER_PROCESS: "100000000" }

/** Returns the environment of a child process: only PATH and HOME come from the tests' own environment. */
const makeEnvironment = (env: Readonly<Record<string, string>>) => ({
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
 * Makes `process.exit(0)` wait until the event loop is empty. If a resource, such as a timer or a connection, keeps the
 * event loop alive, the program prints the resource, and `searchForLeaks` finds the line.
 */
const endByItself = `const exit = process.exit
process.exit = (code) => {
  if (code !== 0) exit(code)
  process.exitCode = code
  const report = () => {
    process._rawDebug("Still active after the stop: " + process.getActiveResourcesInfo())
    exit(code)
  }
  setTimeout(report, 10_000).unref()
}`

export type Service = Awaited<ReturnType<typeof startService>>

/**
 * Starts `serve` with flags, by default on a free port, and waits until the path `until` responds 200. For a database
 * that is not available yet, `until` is /healthz. `program` is the path of the program that the service runs.
 */
export const startService = async (
  env: Readonly<Record<string, string>>,
  until: "/readyz" | "/healthz" = "/readyz",
  flags: ReadonlyArray<"--demo"> = [],
  program = currentProgram
) => {
  const port = env.PORT === undefined ? await freePort() : Number(env.PORT)
  const url = `http://127.0.0.1:${port}`
  const imports = `--import=data:text/javascript,${encodeURIComponent(endByItself)}`
  const started = await startUntilReady(
    process.execPath,
    [imports, program, "serve", ...flags],
    makeEnvironment({ PORT: String(port), LOG_FORMAT: "json", ...env }),
    () => isOk(url + until)
  )
  const exited = once(started.process, "close") as Promise<[number | null]>
  return {
    url,
    port,
    ...started,
    /** Sends SIGTERM, searches the output for leaks and returns the exit code. */
    stop: async (): Promise<number | null> => {
      started.process.kill("SIGTERM")
      const [code] = await exited
      searchForLeaks(started.output())
      return code
    }
  }
}

/** Starts a service. Closing the scope stops the service. */
export const runService = <A extends Pick<Service, "stop">>(
  start: () => Promise<A>
): Effect.Effect<A, never, Scope.Scope> =>
  Effect.acquireRelease(Effect.promise(start), (service) => Effect.promise(() => service.stop()))

export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to completion. */
export const runProcess = async (
  command: string,
  args: ReadonlyArray<string>,
  options: { readonly cwd?: string; readonly env: NodeJS.ProcessEnv },
  input = ""
): Promise<CommandResult> => {
  const child = spawn(command, args, { ...options, stdio: "pipe" })
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", (chunk) => (stdout += chunk))
  child.stderr.setEncoding("utf8").on("data", (chunk) => (stderr += chunk))
  child.stdin.on("error", () => {})
  child.stdin.end(input)
  const [code] = (await once(child, "close")) as [number | null]
  return { code, stdout, stderr }
}

/** Runs one command of the command line to completion. */
export const run = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  input = ""
): Promise<CommandResult> =>
  runProcess(process.execPath, [currentProgram, ...args], { env: makeEnvironment(env) }, input)
