import { once } from "node:events"
import { relative } from "node:path"
import { fileURLToPath } from "node:url"
import { root } from "../docs/markdown.ts"

interface ScriptCoverage {
  readonly url: string
  readonly functions: ReadonlyArray<{ readonly ranges: ReadonlyArray<{ readonly count: number }> }>
}

/** Returns the variable that makes a Node process listen for an inspector on a port, without a line in its output. */
export const listenForInspector = (port: number) => ({
  NODE_OPTIONS: `--inspect=127.0.0.1:${port} --inspect-publish-uid=http`
})

const connectToInspector = async (port: number) => {
  const response = await fetch(`http://127.0.0.1:${port}/json`)
  const [target] = (await response.json()) as ReadonlyArray<{ readonly webSocketDebuggerUrl: string }>
  const url = target!.webSocketDebuggerUrl
  const socket = new WebSocket(url)
  await once(socket, "open")
  let id = 0
  const send = async (method: string, params: object = {}): Promise<unknown> => {
    socket.send(JSON.stringify({ id: ++id, method, params }))
    const [{ data }] = (await once(socket, "message")) as [{ readonly data: string }]
    return JSON.parse(data).result
  }
  return { send, close: () => socket.close() }
}

/**
 * Counts the calls in a process that runs with `listenForInspector`. `listFiles` runs `work`, and returns the files of
 * `src` with a function that was called at least `minCalls` times meanwhile.
 */
export const countCalls = async (port: number) => {
  const { send, close } = await connectToInspector(port)
  await send("Profiler.enable")
  await send("Profiler.startPreciseCoverage", { callCount: true, detailed: false })
  const takeCoverage = async (): Promise<ReadonlyArray<ScriptCoverage>> =>
    ((await send("Profiler.takePreciseCoverage")) as { result: ReadonlyArray<ScriptCoverage> }).result
  const listFiles = async (minCalls: number, work: () => Promise<void>): Promise<ReadonlyArray<string>> => {
    await takeCoverage()
    await work()
    return (await takeCoverage())
      .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) >= minCalls))
      .filter(({ url }) => url.startsWith(`file://${root}/src/`))
      .map(({ url }) => relative(root, fileURLToPath(url)))
      .toSorted()
  }
  return { listFiles, close }
}
