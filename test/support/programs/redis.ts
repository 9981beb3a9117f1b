import { once } from "node:events"
import { connect } from "node:net"
import * as Effect from "effect/Effect"
import { freePort } from "../network/ports.ts"
import { temporaryDirectory } from "../testDirectory.ts"
import { endProcess, startProgram } from "./startProgram.ts"

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

/** A separate `redis-server` on loopback that stores nothing on disk. Closing the scope stops the server. */
export type RedisServer = Effect.Success<typeof redisServer>

export const redisServer = Effect.gen(function* () {
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
    /** Starts the server again on the same port, without data. */
    start: Effect.promise(async () => {
      child = await start()
    }),
    /** Kills the server. */
    stop,
    /** Suspends the server: it keeps its connections and sends no reply until `thaw`. */
    freeze: signal("SIGSTOP"),
    thaw: signal("SIGCONT"),
    /** Sends one inline command over a new connection and returns the RESP reply. */
    ask: (command: string) => Effect.promise(() => ask(port, command))
  }
})
