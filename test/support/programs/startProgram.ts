import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { temporaryDirectory } from "../testDirectory.ts"

/** PATH with Debian's system directories, which the PATH of an unprivileged user can lack. */
export const programPath = `${process.env.PATH}:/usr/sbin:/sbin`

/** Returns true if a server listens on a port of the loopback address. */
export const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resolve(true)
    })
    socket.on("error", () => resolve(false))
  })

/**
 * Sends a signal to a child process, and SIGKILL if the process is still running after 5 s. Resolves once the process
 * has exited.
 */
export const endProcess = async (child: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, "exit")
  child.kill(signal)
  const killed = setTimeout(5_000, undefined, { ref: false }).then(() => child.kill("SIGKILL"))
  await Promise.race([exited, killed.then(() => exited)])
}

/** How long a start may take on a busy machine, including the creation of an embedded database, in milliseconds. */
const startTimeoutMs = 40_000

/**
 * Starts a program as a child process and waits until it is ready. Rejects with the output if the program exits first or
 * is not ready in time. `output` returns everything that the program has written so far to stdout and stderr.
 */
export const startUntilReady = async (
  program: string,
  args: ReadonlyArray<string>,
  env: NodeJS.ProcessEnv,
  isReady: () => Promise<boolean>
) => {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk))
  const deadline = Date.now() + startTimeoutMs
  while (!(await isReady())) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await endProcess(child, "SIGKILL")
      throw new Error(`${program} does not become ready: ${output}`)
    }
    await setTimeout(20)
  }
  return { process: child as ChildProcess, output: () => output }
}

/** Starts a program, and resolves once the program listens on its loopback port. */
export const startProgram = async (
  program: string,
  args: ReadonlyArray<string>,
  port: number
): Promise<ChildProcess> =>
  (await startUntilReady(program, args, { PATH: programPath }, () => isListening(port))).process

/** Starts a program like `startProgram`. Closing the scope ends the program. */
export const runProgram = (
  ...parameters: Parameters<typeof startProgram>
): Effect.Effect<ChildProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => startProgram(...parameters)),
    (child) => Effect.promise(() => endProcess(child))
  )

/** Returns the text of a file of `deploy` after replacements. Throws if the file does not contain a text to replace. */
export const adaptConfig = (file: string, replacements: Readonly<Record<string, string>>): string =>
  Object.entries(replacements).reduce(
    (config, [from, to]) => {
      if (!config.includes(from)) throw new Error(`${file} does not contain ${from}`)
      return config.replaceAll(from, to)
    },
    readFileSync(join(import.meta.dirname, "../../../deploy", file), "utf8")
  )

/** Runs HAProxy with a configuration until the scope closes. The configuration must contain the port. */
export const runHaproxy = Effect.fnUntraced(function* (config: string, port: number) {
  const file = join(yield* temporaryDirectory("haproxy-"), "haproxy.cfg")
  writeFileSync(file, config)
  yield* runProgram("haproxy", ["-db", "-f", file], port)
})
