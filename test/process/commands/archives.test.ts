import { createWriteStream, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import { afterAll, describe, expect, it } from "vitest"
import { archive, prompt } from "../../support/archives.ts"
import { makeResources, postgres } from "../../support/database.ts"
import { run } from "../../support/service.ts"

const MiB = 1024 * 1024

describe("import of a large archive", { timeout: 240_000 }, () => {
  const resources = makeResources()
  const directory = mkdtempSync(join(tmpdir(), "large-archive-"))
  afterAll(async () => {
    rmSync(directory, { recursive: true })
    await resources.release()
  })

  it("import of a large archive needs less memory than the archive, even if the prompts come first and the workspace last", async () => {
    const env = await resources.acquire(postgres.acquire)
    const file = join(directory, "archive.json")
    const { prompts: _, ...others } = archive()
    const members = Object.entries(others)
      .toReversed()
      .map(([name, value]) => `,"${name}":${JSON.stringify(value)}`)
    await pipeline(function* () {
      yield '{"prompts":['
      for (let index = 0; index < 900; index++) {
        yield `${index === 0 ? "" : ","}${JSON.stringify(prompt({ current_content: "content ".repeat(15_000) }))}`
      }
      yield `]${members.join("")}}`
    }, createWriteStream(file))
    expect(statSync(file).size).toBeGreaterThan(100 * MiB)
    const limited = { ...env, NODE_OPTIONS: "--max-old-space-size=80" }
    expect(await run(["import", file, "--dry-run"], limited)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Would import 900 prompts, .*: 901 rows added, 0 changed, 0 removed\n$/)
    })
  })
})
