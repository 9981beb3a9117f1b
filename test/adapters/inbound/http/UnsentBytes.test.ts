import { expect, it } from "vitest"
import { UnsentBytes } from "../../../../src/adapters/inbound/http/response/UnsentBytes.ts"
import { newId } from "../../../support/archives.ts"

const workspace = newId<never>()
const respond = (body: string | Uint8Array) => ({ status: 200, headers: [], body, workspace })
const kibibytes = (count: number) => new Uint8Array(count * 1024)

it("responses that share a buffer hold its memory once, until the last of them is sent", () => {
  const unsent = new UnsentBytes(1024 * 1024)
  const shared = kibibytes(400)
  for (let i = 0; i < 100; i++) {
    expect(unsent.hasRoom(respond(shared))).toBe(true)
    unsent.add(respond(shared))
  }
  expect(unsent.hasRoom(respond(kibibytes(400)))).toBe(false)
  for (let i = 0; i < 99; i++) unsent.remove(respond(shared))
  expect(unsent.hasRoom(respond(kibibytes(400)))).toBe(false)
  unsent.remove(respond(shared))
  expect(unsent.hasRoom(respond(kibibytes(400)))).toBe(true)
})

it("each response with a text as its body holds the memory of the text", () => {
  const unsent = new UnsentBytes(1024 * 1024)
  const text = "x".repeat(10 * 1024)
  for (let i = 0; i < 60; i++) unsent.add(respond(text))
  expect(unsent.hasRoom(respond(kibibytes(400)))).toBe(false)
  for (let i = 0; i < 60; i++) unsent.remove(respond(text))
  expect(unsent.hasRoom(respond(kibibytes(400)))).toBe(true)
})
