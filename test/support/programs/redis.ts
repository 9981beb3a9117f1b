import { once } from "node:events"
import { connect } from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { freePort } from "../ports.ts"
import { temporaryDirectory } from "../temporaryDirectory.ts"
import { endProcess, startProgram } from "./programs.ts"

/** A separate `redis-server` on loopback that stores nothing on disk. Closing the scope stops the server. */
export interface RedisServer {
  readonly url: string
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
  const dir = yield* temporaryDirectory("redis-")
  const port = yield* Effect.promise(freePort)
  const args = ["--bind", "127.0.0.1", "--port", `${port}`, "--dir", dir, "--save", "", "--appendonly", "no"]
  const start = () => startProgram("redis-server", args, port)
  let child = yield* Effect.promise(start)
  const stop = Effect.promise(() => endProcess(child, "SIGKILL"))
  yield* Effect.addFinalizer(() => stop)
  const signal = (name: NodeJS.Signals) => Effect.sync(() => void child.kill(name))
  return {
    url: `redis://127.0.0.1:${port}`,
    start: Effect.promise(async () => {
      child = await start()
    }),
    stop,
    freeze: signal("SIGSTOP"),
    thaw: signal("SIGCONT"),
    ask: (command) => Effect.promise(() => ask(port, command))
  }
})
