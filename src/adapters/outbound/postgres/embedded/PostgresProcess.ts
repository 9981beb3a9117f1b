import { spawn } from "node:child_process"
import { readFileSync, readlinkSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { runAs, type SystemUser } from "./ServerUser.ts"

/**
 * A shell script that runs a program, and ends the program when this process ends, even if this process is killed. A
 * background process of the script reads from a pipe, which the kernel closes when this process ends. The background
 * process then sends SIGINT to the program, and SIGQUIT after 3 s. A line on the pipe means that the program has
 * already ended.
 */
const supervisor = `exec 3<&0 </dev/null
(
  if read -r _ <&3; then exit; fi
  kill -INT $$
  for n in 1 2 3 4 5 6; do sleep 0.5; kill -0 $$ || exit; done
  kill -QUIT $$
) >/dev/null 2>&1 &
exec 3<&-; exec "$@"`

/** The maximum length of the error output that this process keeps, in characters. */
const maxOutputLength = 4096

/**
 * Returns a path by which a program with the current directory `directory` can open this directory. On Linux, the path
 * works even if the user of the program cannot enter the parents of this directory.
 */
export const findCurrentDirectory = (directory: string): string =>
  process.platform === "linux" ? "/proc/self/cwd" : directory

/** Returns the line of a program's error output that says why the program failed. */
const findReason = (output: string): string => {
  const lines = output.split("\n").filter((line) => line.trim() !== "")
  const reason = lines.find((line) => /error:|FATAL:|PANIC:/.test(line)) ?? lines.at(-1) ?? "no message"
  return reason.replace(/^.*?(error|FATAL|PANIC):\s*/, "")
}

/**
 * Starts a program as a user, with `directory` as its current directory. The program ends when this process ends. The
 * promise `ended` never rejects. Once the program has ended, the promise resolves with the exit code and, for a failed
 * program, the reason for the failure.
 */
export const startSupervised = (
  program: string,
  args: ReadonlyArray<string>,
  directory: string,
  user: SystemUser,
  env: NodeJS.ProcessEnv = {}
) => {
  const child = spawn("/bin/sh", ["-c", supervisor, "sh", program, ...args], {
    ...runAs(user),
    cwd: directory,
    env: { PATH: process.env.PATH, LC_ALL: "C", ...env },
    // A terminal sends its signals only to this process, not to the program.
    detached: true,
    stdio: ["pipe", "ignore", "pipe"]
  })
  let output = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-maxOutputLength)
  })
  child.stdin.on("error", () => {})
  const ended = new Promise<{ code: number | null; reason: string }>((resolve) => {
    child.on("error", (error) => resolve({ code: null, reason: error.message }))
    child.on("exit", () => child.stdin.end("\n"))
    child.on("close", (code) => resolve({ code, reason: findReason(output) }))
  })
  return { child, ended }
}

const settings: Readonly<Record<string, string>> = {
  listen_addresses: "",
  unix_socket_directories: ".",
  unix_socket_permissions: "0700",
  shared_buffers: "16MB",
  io_method: "sync",
  wal_level: "minimal",
  max_wal_senders: "0",
  max_wal_size: "256MB",
  max_logical_replication_workers: "0",
  timezone: "UTC",
  log_min_messages: "fatal"
}

/** Returns the process id in the server's lock file, and whether the file says that the server accepts connections. */
const readServerState = (directory: string) => {
  let lines: ReadonlyArray<string> = []
  try {
    lines = readFileSync(join(directory, "postmaster.pid"), "utf8").split("\n")
  } catch {
    // There is no lock file.
  }
  return { pid: Number.parseInt(lines[0] ?? "", 10), isReady: lines[7]?.trim() === "ready" }
}

/**
 * Returns true if the process with this id is a server that runs on the files of the directory. Outside Linux, returns
 * true if this process may send signals to the process with this id.
 */
const isServerOf = (directory: string, pid: number): boolean => {
  try {
    if (process.platform === "linux") return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(directory)
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/**
 * Waits at most 10 s for the server of an earlier, killed process to exit. Returns the process id of this server,
 * which another process can have taken since.
 */
const waitForEarlierServer = async (directory: string): Promise<number> => {
  const deadline = performance.now() + 10_000
  for (;;) {
    const { pid } = readServerState(directory)
    if (!isServerOf(directory, pid)) return pid
    if (performance.now() > deadline) throw new Error(`the process ${pid} still uses it`)
    await setTimeout(20)
  }
}

/** Starts PostgreSQL on the files of a directory, and waits until the server accepts connections. */
export const startPostgres = async (programs: string, directory: string, user: SystemUser) => {
  const earlierPid = await waitForEarlierServer(directory)
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const { child, ended } = startSupervised(
    join(programs, "postgres"),
    ["-D", findCurrentDirectory(directory), ...args],
    directory,
    user,
    // PostgreSQL ignores lock files with the id that `pg_ctl` passes in this variable, even if a process has this id.
    { PG_GRANDPARENT_PID: String(earlierPid) }
  )
  for (;;) {
    const { pid, isReady } = readServerState(directory)
    if (pid === child.pid && isReady) break
    const failure = await Promise.race([ended, setTimeout(5)])
    if (failure !== undefined) throw new Error(`PostgreSQL did not start: ${failure.reason}`)
  }
  return {
    /** Resolves with the exit code and the reason once the server has ended. */
    ended,
    /** Closes the connections of clients and stops the server. */
    stop: async (): Promise<void> => {
      child.stdin.destroy()
      await ended
    }
  }
}
