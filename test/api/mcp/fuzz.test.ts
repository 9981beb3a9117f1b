import { expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { statelessHeaders, statelessMeta } from "../../support/clients/mcp.ts"
import { makeRandom } from "../../support/random.ts"
import { startApi } from "../startApi.ts"

const messages = 3_000
const clients = 8
const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31))

const tenant = sample()
const api = startApi([tenant.archive], { env: { MCP: "on" } })

const methods = [
  "prompts/list",
  "prompts/get",
  "tools/list",
  "tools/call",
  "server/discover",
  "initialize",
  "ping"
]
const words = [
  "greeting",
  "name",
  "arguments",
  "cursor",
  "_meta",
  "get_prompt",
  "list_prompts",
  "2.0",
  "",
  "\u0000",
  "😀",
  "__proto__",
  "constructor",
  "x".repeat(5_000)
]

const { int, pick, chance } = makeRandom(seed)

const randomValue = (depth = 0): unknown => {
  switch (int(depth > 3 ? 5 : 7)) {
    case 0:
      return pick(words)
    case 1:
      return int(2 ** 31)
    case 2:
      return null
    case 3:
      return chance(0.5)
    case 4:
      return -1.5e300
    case 5:
      return Array.from({ length: int(4) }, () => randomValue(depth + 1))
    default:
      return Object.fromEntries(Array.from({ length: int(4) }, () => [pick(words), randomValue(depth + 1)]))
  }
}

/** Returns the value, or a random value in 15% of the calls. */
const mutate = (value: unknown): unknown => (chance(0.15) ? randomValue() : value)

const randomMessage = (): { readonly text: string; readonly headers: Record<string, string> } => {
  const method = chance(0.9) ? pick(methods) : pick([...words, "subscriptions/listen/", "resources/read"])
  const name = pick(["greeting", "get_prompt", "list_prompts", ...words])
  const params = {
    name: mutate(name),
    arguments: mutate({ name: mutate("greeting"), arguments: mutate({}) }),
    cursor: mutate(undefined),
    protocolVersion: mutate("2025-11-25"),
    ...(chance(0.5) ? { _meta: mutate(statelessMeta) } : {})
  }
  const message = { jsonrpc: mutate("2.0"), id: mutate(1), method: mutate(method), params: mutate(params) }
  if (chance(0.1)) delete (message as { id?: unknown }).id
  let text = JSON.stringify(chance(0.05) ? randomValue() : message)
  if (chance(0.05)) text = text.slice(0, int(text.length))
  if (chance(0.02)) text = "[".repeat(100_000)
  if (chance(0.02)) text = `{"a":`.repeat(50_000)
  const safe = (value: string) => (/^[\x21-\x7e]{1,100}$/.test(value) ? value : "x")
  const headers = chance(0.5) ? statelessHeaders(safe(method), safe(name)) : {}
  if (chance(0.1)) headers["mcp-protocol-version"] = pick(["2025-11-25", "2025-06-18", "x"])
  return { text, headers }
}

it(`each of ${messages} random messages gets a valid MCP response with the status 200, 202, 400 or 404 (FUZZ_SEED=${seed})`, async () => {
  console.log(`FUZZ_SEED=${seed}`)
  const outcomes = new Map<string, number>()
  let sent = 0
  const runClient = async () => {
    while (sent < messages) {
      sent++
      const { text, headers } = randomMessage()
      const response = await fetch(`${api.service().url}/mcp`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...headers,
          authorization: `Bearer ${tenant.keys.active.plaintext}`
        },
        body: text
      })
      const body = await response.text()
      const { status } = response
      const fail = () =>
        new Error(`FUZZ_SEED=${seed}: ${text.slice(0, 1_000)} got ${status} ${body.slice(0, 1_000)}`)
      if (status >= 500 || ![200, 202, 400, 404].includes(status)) throw fail()
      if ((status === 202) !== (body === "")) throw fail()
      const message = body === "" ? {} : JSON.parse(body)
      if (
        body !== "" &&
        (message.jsonrpc !== "2.0" || (message.error === undefined) === (message.result === undefined))
      )
        throw fail()
      const outcome = message.result === undefined ? String(message.error?.code ?? status) : "result"
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: clients }, runClient))
  // The generator must make messages of every kind, so each of these outcomes must occur at least 3 times.
  for (const outcome of ["result", "202", "-32700", "-32600", "-32601", "-32602", "-32020"])
    expect([outcome, (outcomes.get(outcome) ?? 0) >= 3]).toEqual([outcome, true])
  expect(api.service().output()).not.toContain('"level":"error"')
}, 120_000)
