import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { startDemoApi } from "../../api/startApi.ts"
import { readCodeBlocks, root } from "../../docs/markdown.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { startNginx } from "../../support/programs/edge.ts"
import { makeLinkedProject, run } from "../../support/programs/packages.ts"
import { programPath } from "../../support/programs/startProgram.ts"
import { currentProgram } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const document = "docs/recipes.md"
const findBlock = (start: string): string => {
  const block = readCodeBlocks(document).find(({ code }) => code.includes(start))
  if (block === undefined) throw new Error(`${document} has no code with ${start}`)
  return block.code
}

const scratch = makeTestDirectory("recipes-")

/** The directory of the commands `prompt-retrieval` and `npx`, which run the sources. */
const bin = join(scratch, "bin")
mkdirSync(bin)
for (const [name, command] of [
  ["prompt-retrieval", `exec '${process.execPath}' '${currentProgram}' "$@"`],
  ["npx", `shift 2; exec '${process.execPath}' '${join(root, "client/src/pull/main.ts")}' "$@"`]
] as const)
  writeFileSync(join(bin, name), `#!/bin/sh\n${command}\n`, { mode: 0o755 })

/** Runs commands of the document in a directory. */
const runCommands = (directory: string, commands: string, env: Readonly<Record<string, string>> = {}) => {
  const { status, stdout, stderr } = spawnSync("bash", ["-euo", "pipefail", "-c", commands], {
    cwd: directory,
    env: {
      PATH: `${bin}:${programPath}`,
      HOME: scratch,
      LOG_LEVEL: "None",
      ...{ GIT_AUTHOR_NAME: "Ada", GIT_AUTHOR_EMAIL: "ada@example.com" },
      ...{ GIT_COMMITTER_NAME: "Ada", GIT_COMMITTER_EMAIL: "ada@example.com" },
      ...env
    },
    encoding: "utf8"
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.not.stringMatching(/error|fatal/i) })
  return stdout
}

const api = startDemoApi()
const database = makeTestDatabase()
const clientVariables = () => ({ PROMPT_RETRIEVAL_URL: api.service().url, PROMPT_RETRIEVAL_KEY: api.key })

it("the commands of docs/recipes.md import a tag into Production, and roll back to an earlier tag", async () => {
  const repository = join(scratch, "repository")
  cpSync(join(root, "examples/prompts-as-files"), repository, { recursive: true })
  const readContents = async () => {
    const rows = await database.sql(
      `select w.name, p.current_content from prompts p join workspaces w on w.id = p.workspace_id
       where p.slug = 'summary' order by w.name`
    )
    return rows.map((row) => Object.values(row as object))
  }
  const original = readFileSync(join(repository, "prompts/summary.md"), "utf8")
  const [, content] = /\n---\n(.*)\n$/s.exec(original)!
  const runInRepository = (commands: string) => runCommands(repository, commands, database.env)

  runInRepository("git init --quiet; git add .; git commit --quiet --message v1; git tag v1")
  runInRepository(findBlock("workspaces create --name Staging"))
  writeFileSync(join(repository, "prompts/summary.md"), original.replace(content!, "Second {{text}}"))
  runInRepository("git add .; git commit --quiet --message v2")
  runInRepository(findBlock("git tag v2"))
  const staging = ["Staging", "Second {{text}}"]
  expect(await readContents()).toEqual([["Production", "Second {{text}}"], staging])
  runInRepository(findBlock("--detach v1"))
  expect(await readContents()).toEqual([["Production", content], staging])
})

it("the bundle commands of docs/recipes.md commit a bundle that pull --frozen accepts", () => {
  const application = join(scratch, "application")
  mkdirSync(application)
  runCommands(application, "git init --quiet")
  runCommands(application, findBlock("pull --out"), clientVariables())
  const frozen =
    "git ls-files; npx --no @prompt-retrieval/client pull --out src/prompts --frozen > frozen.txt"
  expect(runCommands(application, frozen)).toBe("src/prompts/prompts.bundle.json\nsrc/prompts/prompts.ts\n")
})

it("the commands of docs/recipes.md list the prompts that no request in the access log of nginx has read", async () => {
  const log = join(scratch, "access.log")
  const { port } = await database.acquire(
    startNginx(api.service(), { "server_name example.com;": `server_name example.com; access_log ${log};` })
  )
  const findId = (title: string) => api.archive.prompts.find((prompt) => prompt.title === title)!.id
  for (const target of [
    "prompts/support-agent/resolved",
    `prompts/${findId("Refund request")}`,
    `prompts/sentiment-examples-${findId("Sentiment examples").slice(0, 8)}/versions?page=1`,
    "resolved?names=true&prompt=product-announcement&prompt=unknown",
    "resolved?tag=production&names=true",
    "prompts?per_page=1"
  ]) {
    const headers = { authorization: `Bearer ${api.key}` }
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${target}`, { headers })
    await response.arrayBuffer()
    expect(response.status, target).toBe(200)
  }
  await expect.poll(() => readFileSync(log, "utf8").split("\n").length).toBe(7)

  runCommands(scratch, findBlock("> requested.txt"))
  const select = findBlock("psql").replace("'Acme'", `'${api.archive.workspace.name}'`)
  expect(runCommands(scratch, select, { ...api.env, PGOPTIONS: "" })).toBe(
    "Apology opening\nShipping estimate\n"
  )
  expect(runCommands(scratch, findBlock("uniq --count")).replaceAll(/^ +/gm, "")).toBe(
    "1 per_page=1\n1 tag=production&names=true\n"
  )
})

// An installation of promptfoo has more than 200 MB, so this test calls the function as promptfoo 0.123 does.
it("the function in examples/promptfoo returns messages whose text promptfoo does not read as a template", async () => {
  const project = makeLinkedProject("promptfoo")
  cpSync(join(root, "examples/promptfoo"), project, { recursive: true })
  const code = `
import { supportAgent } from "./prompts.ts"
const messages = await supportAgent({ vars: { shop: "{{x}}", question: "Where?" }, provider: { id: "echo" }, config: {} })
console.log(JSON.stringify(messages))`
  const args = ["--input-type=module", "--eval", code]
  const { stdout } = await run(project, process.execPath, args, clientVariables())
  const agent = /^\{% raw %\}You are a support agent of \{\{x\}\}\. .*\{% endraw %\}$/s
  expect(JSON.parse(stdout)).toEqual([
    { role: "system", content: expect.stringMatching(agent) },
    { role: "user", content: "{% raw %}Where?{% endraw %}" }
  ])
})
