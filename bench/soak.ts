/**
 * Stresses the service. Without options, sends requests to all endpoints while the data changes, clients disconnect, and
 * PostgreSQL and Redis fail. `--outage` makes the database of two services unreachable in four ways. `--herd` kills and
 * restarts a service that 2,000 clients read from. Exits with 1 if a response or the service breaks a rule.
 *
 *     npm run soak -- [--outage | --herd] [--seconds N]
 */
import { parseArgs } from "node:util"
import { makeResources } from "../test/support/makeResources.ts"
import { endurance } from "./soak/endurance.ts"
import { herd } from "./soak/herd.ts"
import { outage } from "./soak/outage.ts"

const { values } = parseArgs({
  options: {
    outage: { type: "boolean", default: false },
    herd: { type: "boolean", default: false },
    seconds: { type: "string" }
  }
})
const [run, defaultSeconds, least] = values.outage
  ? ([outage, 60, 5] as const)
  : values.herd
    ? ([herd, 60, 5] as const)
    : ([endurance, 1_200, 60] as const)
const seconds = Number(values.seconds ?? defaultSeconds)
if (!(seconds >= least)) throw new Error(`--seconds must be a number of at least ${least}`)

process.env.TEST_DATABASE_URL ??= "postgres://postgres@127.0.0.1:5432/test"

/** The broken rules, and how often each rule was broken. */
const problems = new Map<string, number>()
const resources = makeResources()
try {
  await run({
    seconds,
    acquire: resources.acquire,
    check: (holds, problem) => {
      if (!holds) problems.set(problem, (problems.get(problem) ?? 0) + 1)
    }
  })
} finally {
  await resources.release()
}
for (const [problem, count] of problems) console.error(`${count} x ${problem}`)
console.log(`${problems.size} problems`)
process.exitCode = problems.size === 0 ? 0 : 1
