/**
 * How long after a change is committed, made in SQL past the service, the last answer of before it begins, over two
 * services of one database that answer from what they have ready, under load: milliseconds, by kind of change, over the
 * slower of the two. Takes a minute or so, and exits with 1 where the 99th percentile is over 100 ms. Needs PostgreSQL.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/freshness.ts
 */
import { makeResources } from "../test/support/database.ts"
import { changesOf, quantile, timeToSee, twoServices } from "../test/support/freshness.ts"
import { startLoad } from "../test/support/load.ts"

const rounds = 120
const target = 100

const resources = makeResources()
try {
  const two = await resources.acquire(twoServices)
  const { archive, keys } = two.tenant
  /** Others read all there is on both, with the key that is refused at times. */
  const load = startLoad(
    [two.near, two.far].flatMap(({ url }) =>
      archive.prompts.map(({ id }) => `${url}/api/v1/prompts/${id}/resolved`)
    ),
    { authorization: `Bearer ${keys.active.plaintext}` }
  )
  const byKind = new Map<string, Array<number>>()
  const all: Array<number> = []
  try {
    for (let round = 0; round < rounds; round++) {
      for (const change of changesOf(two.tenant, round)) {
        const time = await timeToSee(two, change)
        all.push(time)
        byKind.set(change.name, [...(byKind.get(change.name) ?? []), time])
      }
    }
  } finally {
    console.log("answers to the load", await load.stop())
  }
  const figures = (times: ReadonlyArray<number>) =>
    [0.5, 0.99, 1].map((part) => quantile(times, part).toFixed(1).padStart(8)).join("")
  console.log(`${"change".padEnd(20)}${"count".padStart(7)}     p50     p99     max`)
  for (const [name, times] of [...byKind, ["all", all] as const]) {
    console.log(`${name.padEnd(20)}${String(times.length).padStart(7)}${figures(times)}`)
  }
  if (quantile(all, 0.99) > target) process.exitCode = 1
} finally {
  await resources.release()
}
