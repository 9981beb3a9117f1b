import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import type { createPromptApi, PromptApi } from "../../src/index.ts"
import { readDocument, readTable, root } from "./markdown.ts"

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

it("docs/embedding.md states the versions of Node and Effect that the package needs", () => {
  const { engines, peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  expect(readDocument(document)).toContain(`needs Node ${engines.node.replace(">=", "")} or later`)
  expect(readDocument(document)).toContain(`(\`${peerDependencies.effect}\`)`)
})
