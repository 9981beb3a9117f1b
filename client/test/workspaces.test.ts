import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import { afterAll, beforeAll, expect, it } from "vitest"
import { archive, key, user, workspace } from "../../test/support/archives.ts"
import { makeResources, postgres } from "../../test/support/database.ts"
import { makeLinkedProject, removeDirectories, run } from "../../test/support/programs/packages.ts"
import { run as runCommand, type Service, startService } from "../../test/support/service.ts"

const root = join(import.meta.dirname, "../..")
const main = join(import.meta.dirname, "../src/pull/main.ts")

/** Returns an archive with a workspace that has one key and no prompts. */
const makeWorkspace = (name: string) => {
  const home = workspace({ name, tier: "solo" })
  const owner = user()
  const { plaintext, stored } = key(home.id, owner)
  return { name, plaintext, archive: archive({ workspace: home, users: [owner], api_keys: [stored] }) }
}
const [staging, production] = [makeWorkspace("Staging"), makeWorkspace("Production")]

/** An application that reads its prompts by the constants that `pull` has written. */
const application = `
import { fillSlots, PromptClient } from "@prompt-retrieval/client"
import * as prompts from "./prompts.ts"

const client = new PromptClient()
const { data, source } = await client.prompts.getResolved(prompts.supportAgent)
const summary = await client.prompts.getResolved(prompts.summary)
console.log(JSON.stringify({
  isPulled: data.id === prompts.supportAgent.id,
  source,
  text: fillSlots(data, { shop: "Acme" }).slice(0, 32),
  summary: fillSlots(summary.data, { text: "Long" })
}))
`

const resources = makeResources()
let service: Service
let program: string
const env = ({ plaintext }: typeof staging) => ({
  PROMPT_RETRIEVAL_KEY: plaintext,
  PROMPT_RETRIEVAL_URL: service.url
})

beforeAll(async () => {
  const database = await resources.acquire(postgres.acquire)
  service = await startService(database)
  for (const { name, archive } of [staging, production]) {
    expect(await runCommand(["import", "-"], database, JSON.stringify(archive))).toMatchObject({ code: 0 })
    const files = ["import", join(root, "examples/prompts-as-files"), "--workspace", name]
    expect(await runCommand(files, database)).toMatchObject({ code: 0 })
  }
  const project = makeLinkedProject("two-workspaces")
  const pulled = await run(project, process.execPath, [main, "pull"], env(staging))
  expect(pulled).toEqual({ code: 0, stdout: "2 prompts: 2 added\n", stderr: "" })
  writeFileSync(join(project, "main.ts"), application)
  program = join(project, "program.mjs")
  await build({
    entryPoints: [join(project, "main.ts")],
    outfile: program,
    bundle: true,
    platform: "node",
    format: "esm"
  })
}, 120_000)
afterAll(async () => {
  await service?.stop()
  await resources.release()
  removeDirectories()
})

it("one program with the constants of pull reads the prompts of two workspaces that have the same files", async () => {
  const results = []
  for (const workspace of [staging, production]) {
    const { code, stdout, stderr } = await run(root, process.execPath, [program], env(workspace))
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    results.push(JSON.parse(stdout))
  }
  const common = {
    source: "fresh",
    text: "You are a support agent of Acme.",
    summary: "Summarize in three sentences:\n\nLong"
  }
  expect(results).toEqual([
    { isPulled: true, ...common },
    { isPulled: false, ...common }
  ])
})
