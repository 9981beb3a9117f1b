import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Wire from "../../../../../src/adapters/outbound/postgres/pglite/WireProtocol.ts"
import { message, query, sync } from "./RawClient.ts"

const startup = Buffer.concat([Buffer.from([0, 0, 0, 9, 0, 3, 0, 0]), Buffer.alloc(1)])
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

const read = (chunks: ReadonlyArray<Buffer>): Array<[number, string]> => {
  const reader = new Wire.MessageReader()
  return chunks.flatMap((chunk) =>
    reader.push(chunk).map(({ type, frame }): [number, string] => [type, frame.toString("hex")])
  )
}

describe("MessageReader", () => {
  it.effect.prop(
    "returns the same messages in whatever chunks they arrive",
    [
      Schema.Array(Schema.String.check(Schema.isMaxLength(40))).check(Schema.isMaxLength(6)),
      Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 30 }))).check(
        Schema.isMinLength(1),
        Schema.isMaxLength(20)
      )
    ],
    ([statements, sizes]) =>
      Effect.sync(() => {
        const sent = [sslRequest, startup, ...statements.map(query), sync]
        const bytes = Buffer.concat(sent)
        const chunks: Array<Buffer> = []
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = sizes[i % sizes.length]!
          chunks.push(bytes.subarray(at, at + size))
          at += size
        }
        assert.deepStrictEqual(
          read(chunks),
          sent.map((frame, i): [number, string] => [i < 2 ? 0 : frame[0]!, frame.toString("hex")])
        )
      })
  )

  it.each([
    ["a message over 64 MiB", Buffer.from([0x51, 4, 0, 0, 1]), "message too large"],
    ["a length below 4", Buffer.from([0x51, 0, 0, 0, 3]), "invalid message length"]
  ])("throws ProtocolViolation for %s", (_, bytes, reason) => {
    const reader = new Wire.MessageReader()
    reader.push(startup)
    assert.throws(() => reader.push(bytes), Wire.ProtocolViolation, reason)
  })

  it("accepts a message of 64 MiB", () => {
    const body = Buffer.alloc(Wire.maxMessageBytes - 4, 0x20)
    const large = message("Q", body)
    const reader = new Wire.MessageReader()
    reader.push(startup)
    assert.deepStrictEqual(reader.push(large.subarray(0, 70_000)), [])
    assert.strictEqual(reader.push(large.subarray(70_000))[0]?.frame.length, large.length)
  })

  it("throws ProtocolViolation for a startup packet over 10,000 bytes", () => {
    assert.throws(() => read([Buffer.from([0, 0, 39, 17])]), Wire.ProtocolViolation, "message too large")
  })
})

describe("parseStartup", () => {
  const packet = (version: number, words: ReadonlyArray<string>): Buffer => {
    const bytes = Buffer.concat([
      Buffer.alloc(8),
      Buffer.from(words.map((word) => `${word}\0`).join("")),
      Buffer.alloc(1)
    ])
    bytes.writeInt32BE(version, 4)
    return bytes
  }

  it("returns the settings, those in `options` included, without user, database and protocol extensions", () => {
    const words = [
      "user",
      "u",
      "database",
      "d",
      "TimeZone",
      "UTC",
      "options",
      "-c a.b=1 -csearch_path=x\\ y",
      "_pq_.z",
      "1"
    ]
    assert.deepStrictEqual(Wire.parseStartup(packet((3 << 16) | 2, words)), {
      _tag: "Session",
      minor: 2,
      settings: new Map([
        ["timezone", "UTC"],
        ["a.b", "1"],
        ["search_path", "x y"]
      ])
    })
  })

  it("reports a protocol version other than 3 as unsupported", () => {
    assert.deepStrictEqual(Wire.parseStartup(packet(2 << 16, [])), { _tag: "Unsupported" })
  })
})

describe("parseBackendResponse", () => {
  const notification = message("A", Buffer.from("\0\0\0\x01changes\0w1\0"))
  const row = message("D", Buffer.from([0, 0]))
  const inTransaction = message("Z", Buffer.from("T"))

  it("removes notifications and returns the transaction status", () => {
    assert.deepStrictEqual(
      Wire.parseBackendResponse(Buffer.concat([row, notification, row, notification, inTransaction])),
      {
        bytes: Buffer.concat([row, row, inTransaction]),
        status: "T",
        error: undefined,
        notifications: [
          { channel: "changes", payload: "w1" },
          { channel: "changes", payload: "w1" }
        ],
        mayCommit: false
      }
    )
  })

  it("replaces the error of COPY FROM STDIN with one that says it is not supported", () => {
    const copyIn = message("G", Buffer.from([0, 0, 0]))
    const failed = Wire.buildErrorResponse("ERROR", "57014", "COPY from stdin failed")
    const notSupported = Wire.buildErrorResponse(
      "ERROR",
      "0A000",
      "the embedded database does not support COPY FROM STDIN"
    )
    assert.deepStrictEqual(Wire.parseBackendResponse(Buffer.concat([row, copyIn, failed, inTransaction])), {
      bytes: Buffer.concat([row, notSupported, inTransaction]),
      status: "T",
      error: notSupported,
      notifications: [],
      mayCommit: false
    })
  })
})
