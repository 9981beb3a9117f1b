import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { setTimeout } from "node:timers/promises"
import { afterEach, expect, it } from "vitest"
import { key, makeTenant, prompt } from "../../support/archives.ts"
import { call, post, type RpcResponse } from "../../support/clients/mcp.ts"
import { exchangeAll, rawRequest } from "../../support/clients/rawHttp.ts"
import { lockTables } from "../../support/database/locks.ts"
import { startApi } from "../startApi.ts"

const MiB = 1024 * 1024
const own = makeTenant({ prompts: [prompt({ title: "Greeting", current_content: "Greet {{name}}." })] })
const other = makeTenant({ prompts: [prompt({ title: "Greeting", current_content: "Greet {{name}}." })] })
const expelled = key(own.home.id, own.owner)
const [ownKey, otherKey] = [own.key.plaintext, other.key.plaintext]
const api = startApi([{ ...own.archive, api_keys: [own.key.stored, expelled.stored] }, other.archive], {
  env: { MCP: "on" }
})

/** Returns a `prompts/get` message of this many bytes. */
const makeMessage = (bytes: number): string => {
  const message = (name: string) => {
    const params = { name: "greeting", arguments: { name } }
    return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "prompts/get", params })
  }
  return message("x".repeat(bytes - message("").length))
}
/** Sends a `prompts/get` message of this many bytes. */
const getWith = (plaintext: string, bytes = 200): Promise<RpcResponse> =>
  post(api.service(), makeMessage(bytes), { authorization: `Bearer ${plaintext}` })

const sockets: Array<Socket> = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** Returns the head of a call. */
const makeHead = (plaintext: string, line: string): string => {
  const accept = "Accept: application/json, text/event-stream"
  const lines = [`Authorization: Bearer ${plaintext}`, "Content-Type: application/json", accept, line]
  return rawRequest("/mcp", lines, "POST")
}
/** Opens a connection, and sends the head of a call and the start of its body. */
const open = async (plaintext: string, line: string, body: string): Promise<Socket> => {
  const socket = connect(api.service().port, "127.0.0.1")
  sockets.push(socket)
  socket.on("error", () => {})
  socket.write(makeHead(plaintext, line) + body)
  await once(socket, "connect")
  return socket
}
const readStatus = async (socket: Socket): Promise<number> => {
  const [bytes] = await once(socket, "data")
  return Number(String(bytes).split(" ")[1])
}
/** Sends a call and then `rest`. Returns the statuses of the responses that arrive before the connection closes. */
const sendBehindCall = async (rest: string): Promise<ReadonlyArray<number>> => {
  const message = makeMessage(200)
  const head = makeHead(ownKey, `Content-Length: ${message.length}`).replace("Connection: close\r\n", "")
  return (await exchangeAll(api.service().port, head + message + rest)).map(({ status }) => status)
}
const ping = async (plaintext: string): Promise<number> =>
  (await call(api.service(), plaintext, "ping")).status
/** Sends requests with almost complete bodies, until the bodies fill the memory that a workspace can use. */
const fillShare = async (plaintext: string): Promise<void> => {
  const body = makeMessage(MiB)
  do await open(plaintext, `Content-Length: ${MiB}`, body.slice(0, -1))
  while ((await ping(plaintext)) !== 503)
}

it("a request whose body has 500,000 chunks of one byte gets 413, and calls of other workspaces still get results", async () => {
  expect(await ping(ownKey)).toBe(200)
  const chunk = "1\r\nx\r\n"
  const rejected = Array.from({ length: 4 }, async () =>
    readStatus(await open(ownKey, "Transfer-Encoding: chunked", chunk.repeat(MiB / 2)))
  )
  const statuses = await Promise.all(Array.from({ length: 20 }, () => getWith(otherKey)))
  expect(statuses.map(({ status }) => status)).toEqual(Array(20).fill(200))
  expect(await Promise.all(rejected)).toEqual([413, 413, 413, 413])
  expect((await getWith(ownKey, MiB - 1_000)).status).toBe(200)
})

it("a call with a malformed body gets 408 at once, and an earlier call on the same connection gets its result", async () => {
  expect(await ping(ownKey)).toBe(200)
  const malformed = `${makeHead(ownKey, "Transfer-Encoding: chunked")}x\r\n`
  const waiting = await open(ownKey, "Content-Length: 100", "{")
  expect(await sendBehindCall(malformed)).toEqual([200, 408])
  // The body on this connection arrived first, and has 10 s to become complete.
  expect(waiting.bytesRead).toBe(0)
})

it.each(["GARBAGE\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"])(
  "a call before %j on the same connection gets its result, and then the connection closes",
  (rest) => expect(sendBehindCall(rest)).resolves.toEqual([200])
)

it("a disconnect frees the memory of the request body, even if the body is complete and the call waits for the database", async () => {
  await fillShare(ownKey)
  for (const socket of sockets.splice(0)) socket.resetAndDestroy()
  await expect.poll(() => ping(ownKey)).toBe(200)
  const release = await lockTables(api.env.DATABASE_URL, "prompts")
  try {
    await fillShare(ownKey)
    for (const socket of sockets) socket.write("}")
    expect(await ping(ownKey)).toBe(503)
    for (const socket of sockets.splice(0)) socket.destroy()
    await setTimeout(100)
    const response = getWith(ownKey)
    await setTimeout(100)
    await release()
    expect((await response).status).toBe(200)
  } finally {
    await release()
  }
})

it("if a key is revoked while the body of a request arrives, the request gets 401 once the body is complete", async () => {
  const { plaintext, stored } = expelled
  const body = makeMessage(1_000)
  const line = `Content-Length: ${body.length}`
  expect(await ping(plaintext)).toBe(200)
  const openAll = () =>
    Promise.all(Array.from({ length: 10 }, () => open(plaintext, line, body.slice(0, -1))))
  const [complete, late] = [await openAll(), await openAll()]
  // The key is cached, so the service admits all requests at once.
  for (const socket of complete) socket.write("}")
  expect(await Promise.all(complete.map(readStatus))).toEqual(Array(10).fill(200))
  await api.sql("update api_keys set revoked_at = now() where id = $1", [stored.id])
  await expect.poll(() => ping(plaintext)).toBe(401)
  for (const socket of late) socket.write("}")
  expect(await Promise.all(late.map(readStatus))).toEqual(Array(10).fill(401))
})
