import { exchange, getHeader, type HttpResponse, rawRequest } from "../test/support/clients/rawHttp.ts"
import { countListed, makeId, thousand, type Workspace } from "./dataset.ts"
import type { Stream } from "./load.ts"

const connections = 32

export const prompt = (workspace: Workspace, index: number): string =>
  `/api/v1/prompts/${makeId(workspace, "prompt", index)}`
export const resolved = (workspace: Workspace, index: number): string =>
  `${prompt(workspace, index)}/resolved`
export const page = (number: number, perPage = 20): string =>
  `/api/v1/prompts?page=${number}&per_page=${perPage}`
export const lastPage = (workspace: Workspace, perPage: number): number =>
  Math.ceil(countListed(workspace) / perPage)

export const numbers = (count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, i) => i + 1)

/**
 * Returns the items in a fixed order, which is neither the order of the rows in `prompts` nor the order of the prompt
 * list.
 */
export const shuffle = <A>(items: ReadonlyArray<A>): ReadonlyArray<A> => {
  const step = 1_000_003 // a prime that divides none of the lengths used here
  return items.map((_, i) => items[(i * step) % items.length]!)
}

export const makeStream = (
  workspace: Workspace,
  targets: ReadonlyArray<string>,
  overrides: Partial<Stream> = {}
): Stream => ({
  connections,
  targets,
  order: "at random",
  key: workspace.key,
  expect: 200,
  ...overrides
})

/** Returns a stream that sends each target once. */
export const eachOnce = (requests: Stream): Stream => ({
  ...requests,
  order: "in turn",
  maxRequests: requests.targets.length
})

export const onePrompt = makeStream(thousand, [resolved(thousand, 1)])
export const thousandPrompts = makeStream(
  thousand,
  numbers(1000).map((i) => resolved(thousand, i))
)
export const unknownKeys: Stream = { ...onePrompt, key: "unknown", expect: 401 }
/** Requests that exceed the limit of their key, which is one request per minute. */
export const overLimit: Stream = { ...onePrompt, expect: 429, alsoAllowed: 200 }

/** Returns the targets of all prompts of a workspace in a shuffled order. */
export const shuffledPrompts = (
  workspace: Workspace,
  target: (workspace: Workspace, index: number) => string
): ReadonlyArray<string> => shuffle(numbers(workspace.prompts)).map((i) => target(workspace, i))

/** Returns the targets of all pages of a workspace in ten page sizes, in a shuffled order. */
export const shuffledPages = (workspace: Workspace): ReadonlyArray<string> =>
  shuffle(
    numbers(10).flatMap((i) => numbers(lastPage(workspace, 19 + i)).map((number) => page(number, 19 + i)))
  )

/** The requests of each round, and of each round of the warm-up. Rounds are counted from 0. */
interface RoundStreams {
  readonly streams: (round: number) => ReadonlyArray<Stream>
  readonly warmUp: (round: number) => ReadonlyArray<Stream>
}

/** How often `splitByRound` was called. */
let splits = 0

/** Adds a parameter that the API ignores. Each round has a new value, so that no cached response matches a target. */
const addUnusedParameter = (target: string, value: string): string =>
  `${target}${target.includes("?") ? "&" : "?"}unused=${value}`

/**
 * Splits requests into separate groups, one for each round. With `keys`, the warm-up has another group. Without `keys`,
 * the warm-up reads the rows of every round, so that PostgreSQL has these rows in memory before the first round. Even
 * in a scenario with one connection, the warm-up uses 32 connections, so that V8 compiles the servers' code in time.
 */
export const splitByRound = (requests: Stream, rounds: number): RoundStreams => {
  const { targets, keys } = requests
  const size = Math.floor(targets.length / (rounds + 1))
  const split = ++splits
  const slice = (index: number, round: string): Stream => {
    const range = [index * size, (index + 1) * size] as const
    return eachOnce({
      ...requests,
      targets: targets.slice(...range).map((target) => addUnusedParameter(target, `${split}-${round}`)),
      ...(keys === undefined ? {} : { keys: keys.slice(...range) })
    })
  }
  return {
    streams: (round) => [slice(round + 1, `round-${round}`)],
    warmUp: (round) => [
      { ...slice(keys === undefined ? round % (rounds + 1) : 0, `warm-up-${round}`), connections }
    ]
  }
}

/** Sends one of a stream's requests and returns the response. */
export const send = (
  server: { readonly port: number },
  { key, keys, targets, etags }: Stream,
  index = 0
): Promise<HttpResponse> => {
  const [plaintext, etag] = [keys?.[index] ?? key, etags?.[index]]
  return exchange(
    server.port,
    rawRequest(targets[index]!, [
      `Authorization: Bearer ${plaintext === "unknown" ? `key_live_${"0".repeat(64)}` : plaintext}`,
      ...(etag === undefined ? [] : [`If-None-Match: ${etag}`])
    ])
  )
}

/** Returns the requests with the ETags of the server's responses, so that each request gets 304. */
export const withEtags = async (server: { readonly port: number }, requests: Stream): Promise<Stream> => {
  const etags: Array<string> = []
  for (const index of requests.targets.keys())
    etags.push(getHeader(await send(server, requests, index), "etag")!)
  return { ...requests, etags }
}
