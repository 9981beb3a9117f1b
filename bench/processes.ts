import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import { exchange, rawRequest } from "../test/support/clients/rawHttp.ts"
import { freePort } from "../test/support/network/ports.ts"
import { program, readMemoryMiB, root } from "./command.ts"
import { thousand } from "./dataset.ts"
import { resolved } from "./requests.ts"

/** The arguments of Node. The service has the same flag as in `deploy/Containerfile` and the systemd unit. */
const programs = {
  service: ["--max-semi-space-size=16", program, "serve"],
  fastify: ["bench/baselines/fastify.ts"],
  bare: ["bench/baselines/bare.ts"]
} as const

/** How long a process may take to start and to stop, in milliseconds. */
const startTimeoutMs = 30_000
const stopTimeoutMs = 15_000

export type ServerProcess = Awaited<ReturnType<typeof startServer>>

export interface Start {
  readonly program: keyof typeof programs
  readonly env: Readonly<Record<string, string>>
  readonly stdin?: string
  /** A request, and the status with which the server responds to the request once it is ready. */
  readonly probe: { readonly target: string; readonly key: string; readonly expect: number }
}

export const unlimitedRates = { RATE_LIMIT_PER_KEY: "2000000000", RATE_LIMIT_PER_PROCESS: "2000000000" }
export const probe = { target: resolved(thousand, 1), key: thousand.key, expect: 200 }

/** Describes how to start the service on a database that contains the workspace `thousand`. */
export const makeServiceStart = async (
  databaseUrl: string,
  env: Readonly<Record<string, string>> = {}
): Promise<Start> => ({
  program: "service",
  env: {
    DATABASE_URL: databaseUrl,
    METRICS_PORT: String(await freePort()),
    LOG_FORMAT: "json",
    LOG_LEVEL: "Error",
    ...unlimitedRates,
    ...env
  },
  probe
})

const isReady = async (port: number, { target, key, expect }: Start["probe"]): Promise<boolean> => {
  try {
    return (await exchange(port, rawRequest(target, [`Authorization: Bearer ${key}`]))).status === expect
  } catch {
    return false
  }
}

/** Returns the CPU time that a process has used so far, in seconds. Linux only. */
const readCpuTime = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  // The fields follow the name of the program, which is in parentheses and can contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Starts a server on a free loopback port and waits until the probe gets the expected status. */
export const startServer = async ({ program, env, stdin, probe }: Start) => {
  const port = await freePort()
  const startedAt = performance.now()
  const child = spawn(process.execPath, programs[program], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PORT: String(port), ...env },
    stdio: ["pipe", "ignore", "inherit"]
  })
  child.stdin!.on("error", () => {}).end(stdin)
  const exited = once(child, "exit")
  const stop = async () => {
    child.kill("SIGTERM")
    const timer = global.setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs)
    await exited
    clearTimeout(timer)
  }
  const hasExited = () => child.exitCode !== null || child.signalCode !== null
  while (!(await isReady(port, probe))) {
    if (hasExited() || performance.now() - startedAt > startTimeoutMs) {
      await stop()
      throw new Error(`${program} did not start`)
    }
    await setTimeout(4)
  }
  return {
    port,
    /** The time from the start to the first expected response, in milliseconds. */
    startDuration: performance.now() - startedAt,
    /** Returns the resident memory in MiB. */
    memory: () => readMemoryMiB(child.pid!, "VmRSS"),
    /** Returns the CPU time that the process has used so far, in seconds. Linux only. */
    cpuTime: () => readCpuTime(child.pid!),
    stop
  }
}
