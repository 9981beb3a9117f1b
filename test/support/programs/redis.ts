import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { type AddressInfo, createServer, connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { freePort } from "../ports.ts"

/** A separate `redis-server` on loopback that stores nothing on disk. Closing the scope stops the server. */
export interface RedisServer {
  readonly url: string
  readonly port: number
  /** Starts the server again, empty, on the same port. */
  readonly start: Effect.Effect<void>
  /** Kills the server. */
  readonly stop: Effect.Effect<void>
  /** Suspends the server: it keeps its connections and sends no reply until `thaw`. */
  readonly freeze: Effect.Effect<void>
  readonly thaw: Effect.Effect<void>
  /** Sends one inline command over a new connection and returns the RESP reply. */
  readonly ask: (command: string) => Effect.Effect<string>
}

/** Starts the server and resolves once it accepts connections. Rejects if the server exits before that. */
const launch = (port: number, dir: string): Promise<ChildProcess> =>
  new Promise((resolve, reject) => {
    const args = [
      "--bind",
      "127.0.0.1",
      "--port",
      `${port}`,
      "--dir",
      dir,
      "--save",
      "",
      "--appendonly",
      "no"
    ]
    const child = spawn("redis-server", args, { stdio: ["ignore", "pipe", "inherit"] })
    let output = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text
      if (output.includes("Ready to accept connections")) resolve(child)
    })
    child.once("exit", () => reject(new Error(`redis-server exited:\n${output}`)))
    child.once("error", reject)
  })

const kill = async (child: ChildProcess | undefined): Promise<void> => {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, "exit")
  child.kill("SIGKILL")
  await exited
}

/** Sends one command and QUIT over a new connection and returns the reply to the command. */
const ask = async (port: number, command: string): Promise<string> => {
  const socket = connect(port, "127.0.0.1").setEncoding("utf8")
  let reply = ""
  socket.on("data", (text: string) => {
    reply += text
  })
  socket.write(`${command}\r\nQUIT\r\n`)
  await once(socket, "close")
  return reply.replace(/\+OK\r\n$/, "").trim()
}

export const redisServer: Effect.Effect<RedisServer, never, Scope.Scope> = Effect.gen(function* () {
  const dir = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "redis-"))),
    (dir) => Effect.sync(() => rmSync(dir, { recursive: true, force: true }))
  )
  let child: ChildProcess | undefined
  yield* Effect.addFinalizer(() => Effect.promise(() => kill(child)))
  // Another process may take a free port before the server does.
  const port = yield* Effect.tryPromise(async () => {
    const port = await freePort()
    child = await launch(port, dir)
    return port
  }).pipe(Effect.retry({ times: 4 }), Effect.orDie)
  const signal = (name: NodeJS.Signals) => Effect.sync(() => void child?.kill(name))
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    start: Effect.promise(async () => {
      child = await launch(port, dir)
    }),
    stop: Effect.promise(() => kill(child)),
    freeze: signal("SIGSTOP"),
    thaw: signal("SIGCONT"),
    ask: (command) => Effect.promise(() => ask(port, command))
  }
})

/** A TCP proxy that delays everything the server sends. */
export interface SlowProxy {
  readonly url: string
  /** Sets the delay, which is 0 at first. */
  readonly delay: (milliseconds: number) => Effect.Effect<void>
}

export const slowProxy = (port: number): Effect.Effect<SlowProxy, never, Scope.Scope> =>
  Effect.gen(function* () {
    let delay = 0
    const sockets = new Set<Socket>()
    const track = (socket: Socket): Socket => {
      sockets.add(socket)
      return socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket))
    }
    const server = createServer((near) => {
      const far = track(connect(port, "127.0.0.1"))
      track(near).pipe(far)
      near.on("close", () => far.destroy())
      far.on("data", (chunk) => setTimeout(() => near.writable && near.write(chunk), delay))
      far.on("close", () => near.destroy())
    })
    yield* Effect.acquireRelease(
      Effect.promise(() => once(server.listen(0, "127.0.0.1"), "listening")),
      () =>
        Effect.promise(() => {
          const closed = once(server, "close")
          server.close()
          for (const socket of sockets) socket.destroy()
          return closed
        })
    )
    return {
      url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
      delay: (milliseconds) =>
        Effect.sync(() => {
          delay = milliseconds
        })
    }
  })
