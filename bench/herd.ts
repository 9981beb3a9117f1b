/**
 * Lets 2,000 applications with the TypeScript client read from one service, takes the service away, and starts it
 * again. Exits with 1 if the clients then send more than twice their usual rate, if any has no fresh text within 30 s,
 * or if any response is not a success. Needs PostgreSQL.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/herd.ts [--seconds 60] [--clients 2000]
 */
import { parseArgs } from "node:util"
import { runHerd } from "../test/support/herd.ts"

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    clients: { type: "string", default: "2000" }
  }
})
const report = await runHerd({
  clients: Number(values.clients),
  ttl: 30_000,
  outage: Number(values.seconds) * 1_000,
  period: 1_000
})
console.log(report)
const { steadyRate, peakRate, allFreshAfter, neverFresh, statuses, failedReads } = report
const holds =
  peakRate <= 2 * steadyRate &&
  allFreshAfter <= 30_000 &&
  neverFresh === 0 &&
  failedReads === 0 &&
  Object.keys(statuses).every((status) => status === "200" || status === "304")
if (!holds) process.exitCode = 1
