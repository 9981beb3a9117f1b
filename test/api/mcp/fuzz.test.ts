import { expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { post, statelessHeaders, statelessMeta } from "../../support/clients/mcp.ts"
import { makeRandom } from "../../support/random.ts"
import { startApi } from "../startApi.ts"

const messages = 2_000
const clients = 8
const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31))

const tenant = sample()
const api = startApi([tenant.archive], { env: { MCP: "on" } })

const methods = ["prompts/list", "prompts/get", "tools/list", "tools/call", "server/discover", "initialize"]
const words = [
  ...["greeting", "name", "arguments", "cursor", "_meta", "get_prompt", "list_prompts", "2.0", ""],
  ...["\u0000", "😀", "__proto__", "constructor", "x".repeat(5_000)]
]

const { int, pick, chance } = makeRandom(seed)
const some = <A>(make: () => A): Array<A> => Array.from({ length: int(4) }, make)

const randomValue = (depth = 0): unknown =>
  pick<() => unknown>([
    () => pick(words),
    () => pick([int(2 ** 31), null, true, -1.5e300]),
    () => (depth > 3 ? "" : some(() => randomValue(depth + 1))),
    () => (depth > 3 ? "" : Object.fromEntries(some(() => [pick(words), randomValue(depth + 1)])))
  ])()

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
  const id = chance(0.1) ? {} : { id: mutate(1) }
  const message = { jsonrpc: mutate("2.0"), ...id, method: mutate(method), params: mutate(params) }
  const json = JSON.stringify(chance(0.05) ? randomValue() : message)
  const text = chance(0.9)
    ? json
    : pick([json.slice(0, int(json.length)), "[".repeat(100_000), `{"a":`.repeat(50_000)])
  const safe = (value: string) => (/^[\x21-\x7e]{1,100}$/.test(value) ? value : "x")
  const headers = chance(0.5) ? statelessHeaders(safe(method), safe(name)) : {}
  if (chance(0.1)) headers["mcp-protocol-version"] = pick(["2025-11-25", "2025-06-18", "x"])
  return { text, headers }
}

it(`each of ${messages} random messages gets a valid MCP response with the status 200, 202, 400 or 404 (FUZZ_SEED=${seed})`, async () => {
  const counts: Record<string, number> = {}
  let sent = 0
  const runClient = async () => {
    while (sent++ < messages) {
      const { text, headers } = randomMessage()
      const authorization = `Bearer ${tenant.keys.active.plaintext}`
      const { status, body } = await post(api.service(), text, { ...headers, authorization })
      const isValid =
        status === 202
          ? body === undefined
          : [200, 400, 404].includes(status) &&
            body.jsonrpc === "2.0" &&
            (body.error === undefined) !== (body.result === undefined)
      if (!isValid) throw new Error(`${text.slice(0, 1_000)} got ${status} ${JSON.stringify(body)}`)
      const outcome = body?.result === undefined ? String(body?.error.code ?? status) : "result"
      counts[outcome] = (counts[outcome] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: clients }, runClient))
  // The generator must make messages of every kind, so each of these outcomes must occur at least 3 times.
  for (const outcome of ["result", "202", "-32700", "-32600", "-32601", "-32602", "-32020"])
    expect([outcome, (counts[outcome] ?? 0) >= 3]).toEqual([outcome, true])
  expect(api.service().output()).not.toContain('"level":"error"')
})
