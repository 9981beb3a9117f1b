import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { connect } from "node:net"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Debian's own directories, which an ordinary user's PATH may lack. */
export const programPath = `${process.env.PATH}:/usr/sbin:/sbin`

/** Why tests with a program are left out here; `undefined` where they run. With CI set none may be. */
export const noProgram = (program: string, versionFlag: string): string | undefined => {
  if (spawnSync(program, [versionFlag], { env: { PATH: programPath } }).status === 0) return undefined
  const missing = `no ${program} on PATH`
  if (process.env.CI !== undefined) throw new Error(missing)
  console.warn(`Tests with ${program} are left out: ${missing}`)
  return missing
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resolve(true)
    })
    socket.on("error", () => resolve(false))
  })

/** Ends a process that was started here, and waits until it has ended. */
export const endProcess = async (child: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, "exit")
  child.kill(signal)
  const killed = setTimeout(5_000, undefined, { ref: false }).then(() => child.kill("SIGKILL"))
  await Promise.race([exited, killed.then(() => exited)])
}

/** Runs a program in the foreground until the scope closes, and waits until it listens on its port of loopback. */
export const runProgram = (
  program: string,
  args: ReadonlyArray<string>,
  port: number
): Effect.Effect<ChildProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(program, args, {
        env: { PATH: programPath },
        stdio: ["ignore", "pipe", "pipe"]
      })
      let said = ""
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += chunk))
      const deadline = Date.now() + 15_000
      while (!(await listens(port))) {
        if (child.exitCode !== null || Date.now() > deadline) {
          await endProcess(child, "SIGKILL")
          throw new Error(`${program} does not listen: ${said}`)
        }
        await setTimeout(20)
      }
      return child
    }),
    (child) => Effect.promise(() => endProcess(child))
  )

/** An example configuration with each text replaced by what a test needs there; all of them must be in it. */
export const adapted = (text: string, replacements: Readonly<Record<string, string>>): string =>
  Object.entries(replacements).reduce((adapted, [from, to]) => {
    if (!adapted.includes(from)) throw new Error(`the configuration does not say ${from}`)
    return adapted.replaceAll(from, to)
  }, text)
