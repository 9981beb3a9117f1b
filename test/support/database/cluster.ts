import { type ChildProcess, execFileSync, type SpawnOptions, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { chownSync, existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { freePort } from "../network/ports.ts"
import { endProcess } from "../programs/startProgram.ts"
import { temporaryDirectory } from "../testDirectory.ts"

const installed = "/usr/lib/postgresql"
const versions = existsSync(installed) ? readdirSync(installed).toSorted((a, b) => Number(b) - Number(a)) : []
const programs = versions
  .map((version) => join(installed, version, "bin"))
  .find((bin) => existsSync(join(bin, "initdb")))

/** PATH with PostgreSQL's programs first. */
export const clusterPath = `${programs}:${process.env.PATH}`

/**
 * Returns the options with which tests start PostgreSQL's programs. If the tests run as root, the options select the
 * user postgres, because PostgreSQL refuses to run as root.
 */
export const makeSpawnOptions = (): SpawnOptions => {
  if (process.getuid!() !== 0) return {}
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }))
  return { uid: id("-u"), gid: id("-g") }
}

/** Returns the ids of the child processes of a process. */
const listChildren = (pid: number): ReadonlyArray<number> =>
  (readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").match(/\d+/g) ?? []).map(Number)

/** Runs one of PostgreSQL's programs to completion and throws if it fails. */
const runTool = (tool: string, args: ReadonlyArray<string>, options: SpawnOptions): void => {
  const { status, stderr } = spawnSync(join(programs!, tool), args, options)
  if (status !== 0) throw new Error(`${tool}: ${stderr}`)
}

/** A separate PostgreSQL server on loopback that tests can stop, start and freeze. */
export type Cluster = Effect.Success<ReturnType<typeof makeCluster>>

/** Creates a cluster without starting it. `create` writes its data directory. Closing the scope removes the cluster. */
const makeCluster = Effect.fnUntraced(function* (create: (data: string, options: SpawnOptions) => void) {
  const user = makeSpawnOptions()
  const home = yield* temporaryDirectory("cluster-")
  if (user.uid !== undefined) chownSync(home, user.uid, user.gid!)
  const data = join(home, "data")
  const port = yield* Effect.promise(freePort)
  yield* Effect.sync(() => create(data, { ...user, cwd: home }))
  let server: ChildProcess | undefined
  /** The ids of the suspended processes, with the postmaster first. */
  let frozen: ReadonlyArray<number> = []

  /** Starts the server, with further settings such as `fsync=on`, and resolves once it accepts queries. */
  const start = async (more: ReadonlyArray<string> = []) => {
    const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${home}`, "fsync=off", ...more]
    const args = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])]
    const child = spawn(join(programs!, "postgres"), args, { ...user, cwd: home, stdio: "ignore" })
    server = child
    const isReady = () =>
      spawnSync(join(programs!, "pg_isready"), ["-q", "-h", "127.0.0.1", "-p", String(port)]).status === 0
    while (!isReady()) {
      if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode}`)
      await setTimeout(10)
    }
  }

  /** Suspends every process of the server. The connections stay open. */
  const freeze = (): void => {
    const { pid } = server!
    // Suspends the postmaster first, so that it cannot start another process.
    process.kill(pid!, "SIGSTOP")
    frozen = [pid!, ...listChildren(pid!)]
    for (const pid of frozen) process.kill(pid, "SIGSTOP")
  }
  /** Sends a signal to every suspended process. */
  const signalFrozen = (signal: NodeJS.Signals): void => {
    // The postmaster gets the signal last. A running postmaster reaps child processes that have ended, and
    // `process.kill` would throw for their pids.
    for (const pid of frozen.toReversed()) process.kill(pid, signal)
    frozen = []
  }
  const thaw = (): void => signalFrozen("SIGCONT")
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    thaw()
    if (server !== undefined) await endProcess(server, signal)
  }
  yield* Effect.addFinalizer(() => Effect.promise(() => end("SIGQUIT")))
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    start,
    /** Stops the server as `pg_ctl stop -m immediate` does. The next start runs recovery. */
    stop: () => end("SIGQUIT"),
    /** Stops the server as `pg_ctl stop -m fast` does: sessions end, and the server shuts down cleanly. */
    shutDown: () => end("SIGINT"),
    /** Kills every process of the server with SIGKILL. */
    kill: async () => {
      const exited = once(server!, "exit")
      freeze()
      signalFrozen("SIGKILL")
      await exited
    },
    freeze,
    thaw
  }
})

/** Creates a new cluster without starting it. Closing the scope removes the cluster. */
export const freshCluster = makeCluster((data, options) =>
  runTool(
    "initdb",
    ["-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"],
    options
  )
)

/** Creates, but does not start, a hot standby of a running cluster. Closing the scope removes the standby. */
export const makeStandby = (primary: Cluster) =>
  makeCluster((data, options) =>
    runTool(
      "pg_basebackup",
      ["-D", data, "-d", primary.url, "--write-recovery-conf", "--checkpoint=fast", "--no-sync"],
      options
    )
  )
