import { expect, it } from "vitest"
import type { createPromptApi, PromptApi } from "../../src/index.ts"
import { readTable } from "./markdown.ts"

const document = "docs/embedding.md"
const readNames = (heading: string) => readTable(document, heading).map(([name]) => name!.replaceAll("`", ""))

it("the tables in docs/embedding.md list all options of createPromptApi and all members of its API", () => {
  const options: Record<keyof Parameters<typeof createPromptApi>[0], true> = {
    databaseUrl: true,
    databaseFeedUrl: true,
    redisUrl: true,
    rateLimits: true,
    outageMaxAge: true,
    logger: true,
    metrics: true,
    basePath: true,
    publicUrl: true
  }
  const members: Record<keyof PromptApi, true> = {
    handler: true,
    prompts: true,
    metrics: true,
    close: true
  }
  expect(readNames("Create the API")).toEqual(Object.keys(options))
  expect(readNames("Members of the API")).toEqual(Object.keys(members))
})
