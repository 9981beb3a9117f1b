import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { setTimeout } from "node:timers/promises"
import { afterEach, describe, expect, it } from "vitest"
import { key, makeTenant, prompt } from "../../support/archives.ts"
import {
  call,
  callStateless,
  listen,
  type MessageStream,
  openNotifications
} from "../../support/clients/mcp.ts"
import { rawRequest } from "../../support/clients/rawHttp.ts"
import { startApi } from "../startApi.ts"

const makeLargePrompt = () => prompt({ title: "Large", current_content: "x".repeat(900 * 1024) })
const [large, otherLarge] = [makeLargePrompt(), makeLargePrompt()]
const own = makeTenant({ prompts: [large] })
const other = makeTenant({ prompts: [otherLarge] })
const expelled = key(own.home.id, own.owner)
const [ownKey, otherKey] = [own.key.plaintext, other.key.plaintext]
const ownArchive = { ...own.archive, api_keys: [own.key.stored, expelled.stored] }
const api = startApi([ownArchive, other.archive], {
  env: { MCP: "on", RATE_LIMIT_PER_KEY: "100000", RATE_LIMIT_PER_PROCESS: "100000" }
})

/** Returns the bytes of a GET request that does not ask the service to close the connection. */
const rawGet = (key: string, path = "/mcp"): string =>
  rawRequest(path, [`Authorization: Bearer ${key}`, "Accept: text/event-stream"]).replace(
    "Connection: close\r\n",
    ""
  )

const connectRaw = async (bytes: string): Promise<Socket> => {
  const socket = connect(api.service().port, "127.0.0.1")
  socket.on("error", () => {})
  socket.write(bytes)
  await once(socket, "connect")
  return socket
}

/** Reads until `text` has arrived. Returns the bytes up to the end of `text`, and the bytes after `text`. */
const readUntil = (socket: Socket, text: string): Promise<[string, string]> =>
  new Promise((resolve, reject) => {
    let received = ""
    const onData = (chunk: Buffer): void => {
      received += chunk.toString()
      const end = received.indexOf(text)
      if (end < 0) return
      socket.off("data", onData).resume()
      resolve([received.slice(0, end + text.length), received.slice(end + text.length)])
    }
    socket.on("data", onData)
    socket.once("close", () => reject(new Error(`The connection closed after: ${received}`)))
  })

describe("an MCP stream of notifications", () => {
  const streams: Array<MessageStream> = []
  const open = async (opening: Promise<MessageStream>): Promise<MessageStream> => {
    const stream = await opening
    streams.push(stream)
    return stream
  }
  afterEach(async () => {
    for (const stream of streams.splice(0)) await stream.close()
  })
  const edit = (id: string) =>
    api.sql("update prompts set description = description || '.' where workspace_id = $1", [id])
  const changed = (meta?: object) => ({
    jsonrpc: "2.0",
    method: "notifications/prompts/list_changed",
    ...(meta === undefined ? {} : { params: { _meta: meta } })
  })

  it("an MCP stream of protocol version 2025-11-25 reports an edit in its workspace within 100 ms, and does not report edits in other workspaces", async () => {
    const stream = await open(openNotifications(api.service(), ownKey))
    expect([
      stream.status,
      stream.headers.get("content-type"),
      stream.headers.get("x-accel-buffering")
    ]).toEqual([200, "text/event-stream", "no"])
    const message = stream.next()
    await edit(other.home.id)
    expect(await Promise.race([message, setTimeout(300, "none")])).toBe("none")
    const durations: Array<number> = []
    let next = message
    for (let n = 0; n < 5; n++) {
      await edit(own.home.id)
      const start = performance.now()
      expect(await next).toEqual(changed())
      durations.push(performance.now() - start)
      next = stream.next()
    }
    // Checks the median, because other processes on the machine can delay some of the messages.
    expect(durations.sort((a, b) => a - b)[2]).toBeLessThan(100)
  })

  it("the first message of an MCP stream of protocol version 2026-07-28 is the acknowledgment, and every message contains the id of the request", async () => {
    const meta = { "io.modelcontextprotocol/subscriptionId": 7 }
    const stream = await open(
      listen(api.service(), ownKey, { promptsListChanged: true, toolsListChanged: true }, 7)
    )
    expect(await stream.next()).toEqual({
      jsonrpc: "2.0",
      method: "notifications/subscriptions/acknowledged",
      params: { _meta: meta, notifications: { promptsListChanged: true } }
    })
    await edit(own.home.id)
    expect(await stream.next()).toEqual(changed(meta))
  })

  it("an MCP stream that is opened without promptsListChanged reports no edit", async () => {
    const stream = await open(listen(api.service(), ownKey, { toolsListChanged: true }))
    expect((await stream.next()).params.notifications).toEqual({})
    await edit(own.home.id)
    expect(await Promise.race([stream.next(), setTimeout(300, "none")])).toBe("none")
  })

  it("an MCP stream ends when its key is revoked, and later calls with the key get 401", async () => {
    const stream = await open(openNotifications(api.service(), expelled.plaintext))
    const ping = async () => (await call(api.service(), expelled.plaintext, "ping")).status
    expect([await ping(), await ping()]).toEqual([200, 200])
    await api.sql("update api_keys set revoked_at = now() where id = $1", [expelled.stored.id])
    expect(await stream.next()).toBeUndefined()
    expect(await ping()).toBe(401)
  })

  it("an MCP stream sends a comment immediately and every 5 s, so that proxies do not close the stream", async () => {
    const socket = await connectRaw(rawGet(ownKey))
    const [, received] = await readUntil(socket, ":\n\n")
    expect(received).not.toContain(":\n\n")
    const start = performance.now()
    await readUntil(socket, ":\n\n")
    expect(performance.now() - start).toBeLessThan(7_000)
    socket.destroy()
  })

  it("an MCP stream is not opened while other requests of its connection are in flight: the connection closes", async () => {
    const socket = await connectRaw(rawGet(otherKey).repeat(2))
    await once(socket.resume(), "close")
  })

  it.each([
    ["another request", () => rawGet(otherKey)],
    ["bytes that are not a request", () => "\0garbage\r\n\r\n"]
  ])("an MCP stream ends and is no longer counted as open when its client sends %s", async (_, makeBytes) => {
    for (let n = 0; n < 16; n++) {
      const socket = await connectRaw(rawGet(otherKey))
      await readUntil(socket, ":\n\n")
      socket.write(makeBytes())
      await once(socket, "close")
    }
    for (let n = 0; n < 16; n++)
      expect((await open(openNotifications(api.service(), otherKey))).status).toBe(200)
  })

  const destroyAfter = (bytes: string) => (socket: Socket) => {
    socket.write(bytes)
    socket.destroy()
  }
  it.each<[string, request: string, leave: (socket: Socket) => void]>([
    ["closes its connection", rawGet(otherKey), (socket) => void socket.end()],
    ["resets its connection", rawGet(otherKey), (socket) => void socket.resetAndDestroy()],
    ["sends garbage and leaves", rawGet(otherKey), destroyAfter("\0garbage\r\n\r\n")],
    ["sends the start of a request and leaves", rawGet(otherKey), destroyAfter("GET /mcp HTTP/1.1\r\nHost:")]
  ])("an MCP stream is not counted as open 1 s after its client %s", async (_, request, leave) => {
    const sockets = await Promise.all(Array.from({ length: 16 }, () => connectRaw(request)))
    await Promise.all(sockets.map((socket) => readUntil(socket, ":\n\n")))
    for (const socket of sockets) leave(socket)
    await setTimeout(1_000)
    for (let n = 0; n < 16; n++)
      expect((await open(openNotifications(api.service(), otherKey))).status).toBe(200)
  })

  it("requests pipelined behind an MCP stream do not prevent large responses to other workspaces", async () => {
    const read = rawGet(ownKey, `/api/v1/prompts/${large.id}/resolved`)
    const sockets = await Promise.all(
      Array.from({ length: 16 }, () => connectRaw(rawGet(ownKey) + read.repeat(15)))
    )
    await setTimeout(2_000)
    const { status } = await fetch(`${api.service().url}/api/v1/prompts/${otherLarge.id}/resolved`, {
      headers: { authorization: `Bearer ${otherKey}` }
    })
    for (const socket of sockets) socket.destroy()
    expect(status).toBe(200)
  })

  it("an MCP stream is not opened for a key that has 16 open streams", async () => {
    // Closed streams must not be counted in the limit of 16 open streams.
    for (let n = 0; n < 20; n++) await (await openNotifications(api.service(), ownKey)).close()
    await setTimeout(100)
    for (let n = 0; n < 16; n++)
      expect((await open(openNotifications(api.service(), ownKey))).status).toBe(200)
    const { status, body } = await callStateless(api.service(), ownKey, "subscriptions/listen")
    expect([status, body]).toMatchObject([503, { id: 1, error: { data: { code: "SERVICE_UNAVAILABLE" } } }])
  })
})
