/**
 * Runs generated histories of changes against two instances of the service, which connect to PostgreSQL through
 * PgBouncer. Restarts the processes during a history, and checks every response against an API without caches. Tests the
 * pool modes `transaction` and `session` at the same time. Prints the first seed whose history violates a rule, with the
 * response and the history, and exits with 1. With --seed, repeats the history of one seed. The seed determines the
 * changes and the restarts, but not their interleaving.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/oracle.ts [--seconds 3600] [--seed N]
 */
import { parseArgs } from "node:util"
import { makeResources } from "../test/support/makeResources.ts"
import { report, summarize } from "./oracle/Report.ts"
import { runHistory } from "./oracle/Run.ts"
import { startStage } from "./oracle/Stage.ts"

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "3600" }, seed: { type: "string" } }
})
const seconds = Number(values.seconds)
const fixedSeed = values.seed === undefined ? undefined : Number(values.seed)
if (!(seconds > 0)) throw new Error("--seconds must be a positive number")
if (fixedSeed !== undefined && !Number.isSafeInteger(fixedSeed)) throw new Error("--seed must be an integer")

process.env.TEST_DATABASE_URL ??= "postgres://postgres@127.0.0.1:5432/test"

const until = performance.now() + seconds * 1_000
const resources = makeResources()
try {
  const stages = await Promise.all(
    (["transaction", "session"] as const).map((poolMode) =>
      resources.acquire(
        startStage({
          poolMode,
          outageMaxAge: poolMode === "session" ? "300 seconds" : "0 seconds"
        })
      )
    )
  )
  let runs = 0
  let failure = ""
  // Without --seed, every run uses different seeds.
  let next = fixedSeed ?? Math.floor(Date.now() / 1_000)
  await Promise.all(
    stages.map(async (stage, index) => {
      while (failure === "" && (performance.now() < until || runs === 0)) {
        const seed = fixedSeed ?? next++
        const result = await runHistory(stage, seed)
        runs++
        console.log(`stage ${index}, ${summarize(result)}`)
        failure ||= report(result)
      }
    })
  )
  console.log(`${runs} histories`)
  if (failure !== "") {
    console.error(failure)
    process.exitCode = 1
  }
} finally {
  await resources.release()
}
