import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import manifest from "../package.json" with { type: "json" }
import { freePort } from "../test/support/ports.ts"
import { exchange, rawRequest } from "../test/support/rawHttp.ts"

const root = join(import.meta.dirname, "..")
/** The service as `npm start` does it. */
const programs = {
  service: manifest.scripts.start.split(" ").slice(1),
  "by hand": ["bench/baselines/by-hand.ts"],
  bare: ["bench/baselines/bare.ts"]
} as const

/** How long a process may take to serve and to end, in milliseconds. */
const startDeadline = 30_000
const stopDeadline = 15_000

/** A server of its own, which answers. */
export interface ServerProcess {
  readonly port: number
  /** From its start to the first answer that was expected, in milliseconds. */
  readonly startTook: number
  /** Resident memory in MiB. */
  readonly memory: () => Promise<number>
  readonly stop: () => Promise<void>
}

export interface Start {
  readonly program: keyof typeof programs
  readonly env: Readonly<Record<string, string>>
  readonly stdin?: string
  /** What tells that it serves. */
  readonly probe: { readonly target: string; readonly key: string; readonly expect: number }
  /** Whether to leave out what it writes: request log lines. */
  readonly silent?: boolean
}

const answers = async (port: number, { target, key, expect }: Start["probe"]): Promise<boolean> => {
  try {
    return (await exchange(port, rawRequest(target, [`Authorization: Bearer ${key}`]))).status === expect
  } catch {
    return false
  }
}

const residentOf = async (pid: number): Promise<number> => {
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", String(pid)])
  return Number(stdout) / 1024
}

/** Starts a server on a free loopback port and waits until it answers what the probe expects. */
export const startServer = async ({ program, env, stdin, probe, silent }: Start): Promise<ServerProcess> => {
  const port = await freePort()
  const startedAt = performance.now()
  const child = spawn(process.execPath, [...programs[program]], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PORT: String(port), ...env },
    stdio: ["pipe", "ignore", silent ? "ignore" : "inherit"]
  })
  child.stdin!.on("error", () => {}).end(stdin)
  const exited = once(child, "exit")
  const stop = async () => {
    child.kill("SIGTERM")
    const timer = global.setTimeout(() => child.kill("SIGKILL"), stopDeadline)
    await exited
    clearTimeout(timer)
  }
  const ended = () => child.exitCode !== null || child.signalCode !== null
  while (!(await answers(port, probe))) {
    if (ended() || performance.now() - startedAt > startDeadline) {
      await stop()
      throw new Error(`${program} did not serve`)
    }
    await setTimeout(4)
  }
  return { port, startTook: performance.now() - startedAt, memory: () => residentOf(child.pid!), stop }
}
