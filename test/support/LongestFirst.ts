import { relative } from "node:path"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** The test files that take longest, in seconds on two cores. */
const seconds: Readonly<Record<string, number>> = {
  "test/package/package.test.ts": 95,
  "test/process/commands/postgres.test.ts": 90,
  "test/process/lifecycle/process.test.ts": 50,
  "test/docs/code.test.ts": 45,
  "test/adapters/outbound/postgres/embedded/EmbeddedPostgres.test.ts": 45,
  "test/adapters/inbound/cli/commands/ExportCommand.test.ts": 40,
  "test/process/lifecycle/startAndStop.test.ts": 40,
  "test/adapters/outbound/postgres/prompts/QueryPlans.test.ts": 35
}

/**
 * Starts the longest test files first, so that no worker runs a long file alone at the end. Vitest itself
 * knows only the durations of earlier runs on the same machine.
 */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const duration = ({ moduleId }: TestSpecification): number =>
      seconds[relative(this.ctx.config.root, moduleId)] ?? 0
    return (await super.sort(files)).toSorted((a, b) => duration(b) - duration(a))
  }
}
