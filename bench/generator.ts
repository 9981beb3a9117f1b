/**
 * The worker thread of the load generator. Each of its connections is a raw keep-alive socket with one request in
 * flight. The thread parses only the status and the length of a response, so it needs less CPU time than the cheapest
 * server.
 */
import { connect, type Socket } from "node:net"
import { performance } from "node:perf_hooks"
import { parentPort } from "node:worker_threads"
import { expectedStatus, type Load, type LoadResult, type Stream, type StreamResult } from "./load.ts"

const headEnd = Buffer.from("\r\n\r\n")
const lengthPattern = /\r\ncontent-length: *(\d+)/i

/** The bytes of a request, and the status that its response must have. */
interface PreparedRequest {
  readonly bytes: Buffer | string
  readonly status: number
}

/** Returns a function that returns the next request of a stream. Prepares requests in advance if possible. */
const makeRequestSource = (stream: Stream): (() => PreparedRequest) => {
  const { targets, key, keys, etags, order, expect } = stream
  const format = (target: string, key: string, etag: string | undefined) =>
    `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n${
      etag === undefined ? "" : `If-None-Match: ${etag}\r\n`
    }\r\n`
  let next = 0
  if (key === "unknown") {
    const start = crypto.randomUUID().replaceAll("-", "").padEnd(48, "0")
    return () => ({
      bytes: format(targets[0]!, `key_live_${start}${(next++).toString(16).padStart(16, "0")}`, undefined),
      status: expect
    })
  }
  const prepared = targets.map((target, index) => ({
    bytes: Buffer.from(format(target, keys?.[index] ?? key, etags?.[index])),
    status: expectedStatus(stream, index)
  }))
  return order === "at random"
    ? () => prepared[Math.floor(Math.random() * prepared.length)]!
    : () => prepared[next++ % prepared.length]!
}

interface Run {
  readonly port: number
  readonly until: number
}

/** Sends the requests of one stream until the time `until`, or until the stream has sent its `maxRequests`. */
const runStream = (
  stream: Stream,
  nextRequest: () => PreparedRequest,
  { port, until }: Run
): Promise<StreamResult> => {
  const maxRequests = stream.maxRequests ?? Number.POSITIVE_INFINITY
  const interval = stream.rate === undefined ? 0 : 1000 / stream.rate
  const latencies: Array<number> = []
  const unexpected: Record<string, number> = {}
  let sentCount = 0
  let faults = 0
  let inTime = 0
  let last = 0
  const started = performance.now()

  const runConnection = (): Promise<void> =>
    new Promise((resolve) => {
      let sentAt = 0
      let expected = ""
      /**
       * The number of bytes of the response that have not arrived, or -1 while the head of the response is incomplete.
       */
      let remaining = -1
      let head = Buffer.alloc(0)

      const send = () => {
        if (performance.now() >= until || sentCount >= maxRequests) {
          socket.end()
          return
        }
        const wait = started + sentCount++ * interval - performance.now()
        if (wait > 0) setTimeout(write, wait)
        else write()
      }

      const write = () => {
        const { bytes, status } = nextRequest()
        expected = String(status)
        sentAt = performance.now()
        socket.write(bytes)
      }

      const finish = () => {
        const now = performance.now()
        remaining = -1
        latencies.push(now - sentAt)
        if (now <= until) {
          inTime++
          last = now
        }
        send()
      }

      const read = (chunk: Buffer) => {
        if (remaining >= 0) {
          remaining -= chunk.length
          if (remaining <= 0) finish()
          return
        }
        const bytes = head.length === 0 ? chunk : Buffer.concat([head, chunk])
        const end = bytes.indexOf(headEnd)
        if (end < 0) {
          head = Buffer.from(bytes)
          return
        }
        head = Buffer.alloc(0)
        const text = bytes.toString("latin1", 0, end)
        const status = text.slice(9, 12)
        if (status !== expected) unexpected[status] = (unexpected[status] ?? 0) + 1
        const length = status === "304" ? 0 : Number(lengthPattern.exec(text)?.[1] ?? Number.NaN)
        if (Number.isNaN(length)) {
          socket.destroy(new Error("a response without a length"))
          return
        }
        remaining = length - (bytes.length - end - headEnd.length)
        if (remaining <= 0) finish()
      }

      const socket: Socket = connect({
        port,
        host: "127.0.0.1",
        noDelay: true,
        onread: {
          buffer: Buffer.alloc(64 * 1024),
          callback: (size, buffer) => {
            read((buffer as Buffer).subarray(0, size))
            return true
          }
        }
      })
      // The run must end even if a response never arrives.
      const timeout = setTimeout(
        () => socket.destroy(new Error("no response")),
        until - performance.now() + 10_000
      )
      socket.on("connect", send)
      socket.on("error", () => faults++)
      socket.on("close", () => {
        clearTimeout(timeout)
        if (performance.now() < until && sentCount < maxRequests) faults++
        resolve()
      })
    })

  return Promise.all(Array.from({ length: stream.connections }, runConnection)).then(() => ({
    perSecond: inTime === 0 ? 0 : (inTime * 1000) / (last - started),
    latencies: Float64Array.from(latencies),
    unexpected,
    faults
  }))
}

const runLoad = async ({ port, seconds, streams }: Load): Promise<LoadResult> => {
  const sources = streams.map(makeRequestSource)
  const before = performance.eventLoopUtilization()
  const until = performance.now() + seconds * 1000
  const results = await Promise.all(
    streams.map((stream, index) => runStream(stream, sources[index]!, { port, until }))
  )
  return { streams: results, busy: performance.eventLoopUtilization(before).utilization }
}

parentPort!.on("message", async (load: Load) => parentPort!.postMessage(await runLoad(load)))
