import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { join } from "node:path"

/** The directory of this checkout. */
export const root = join(import.meta.dirname, "..")

/** The program that `npm run build:program` builds. */
export const program = join(root, "dist/main.js")

/**
 * Returns the resident memory of a process, current or peak, in MiB. Returns 0 once the process has exited. Linux only.
 */
export const readMemoryMiB = (pid: number, field: "VmRSS" | "VmHWM"): number => {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8")
    return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

/** Runs the program with arguments. Returns how long the program ran, in milliseconds, and its peak memory in MiB. */
export const runCommand = async (args: ReadonlyArray<string>, databaseUrl: string) => {
  const started = performance.now()
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: databaseUrl },
    stdio: ["ignore", "ignore", "inherit"]
  })
  let peakMiB = 0
  const timer = setInterval(() => (peakMiB = Math.max(peakMiB, readMemoryMiB(child.pid!, "VmHWM"))), 50)
  const [code] = await once(child, "exit")
  clearInterval(timer)
  if (code !== 0) throw new Error(`${args.join(" ")} exited with ${code}`)
  return { duration: performance.now() - started, peakMiB }
}
