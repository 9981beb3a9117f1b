/** The scenarios with one caller: one connection that sends its next request when it has received the response. */
import {
  assertSameAsBaseline,
  compareWithBare,
  p50,
  type Scenario,
  startService,
  toBareRatio,
  uncachedScenario
} from "./comparisons.ts"
import { hundredThousand, makeKey, thousand, type Workspace } from "./dataset.ts"
import type { Stream } from "./load.ts"
import { atMost } from "./measurement.ts"
import { makeStream, numbers, onePrompt, prompt, resolved, shuffle, shuffledPages } from "./requests.ts"

const oneConnection = { connections: 1 }

const hot: Scenario = {
  group: "alone",
  title: "One caller: resolved read, hot",
  workspaces: [thousand],
  measure: async (harness) => {
    const server = await startService(harness)
    await assertSameAsBaseline(harness, server, onePrompt)
    const rounds = await compareWithBare(harness, server, { ...onePrompt, ...oneConnection })
    return [toBareRatio(hot.title, atMost(1.3, 1.1), rounds, p50)]
  }
}

/** The prompts from the last one that the scenarios with several connections read to the first one. */
const promptIndices = (): ReadonlyArray<number> => shuffle(numbers(hundredThousand.prompts)).toReversed()

const readPrompts = (
  target: (workspace: Workspace, index: number) => string,
  overrides: Partial<Stream> = {}
): Stream =>
  makeStream(
    hundredThousand,
    promptIndices().map((index) => target(hundredThousand, index)),
    { ...oneConnection, ...overrides }
  )

const cold = (what: string, goal: ReturnType<typeof atMost>, makeRequests: () => Stream): Scenario =>
  uncachedScenario("alone", `One caller: ${what}`, goal, hundredThousand, makeRequests, p50)

const goal = atMost(0.85, 0.65)

export const loneCaller: ReadonlyArray<Scenario> = [
  hot,
  cold("resolved read, cold", goal, () => readPrompts(resolved)),
  cold("resolved read, a new key each time", atMost(0.9, 0.7), () =>
    readPrompts(resolved, { keys: promptIndices().map((index) => makeKey(hundredThousand, index)) })
  ),
  cold("another list page each time", goal, () =>
    makeStream(hundredThousand, shuffledPages(hundredThousand).toReversed(), oneConnection)
  ),
  cold("version, cold", goal, () => readPrompts((...args) => `${prompt(...args)}/versions/1`)),
  cold("versions, cold", goal, () => readPrompts((...args) => `${prompt(...args)}/versions`))
]
