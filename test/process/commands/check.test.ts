import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, it } from "vitest"
import { parse } from "yaml"
import { makeFailure, makeSuccess, runInProcess as run, runJson } from "../../support/services/commandLine.ts"
import { currentProgram } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const example = join(import.meta.dirname, "../../../examples/prompts-as-files")

/** Renames a prompt, and replaces a slot and a type. */
const breakCallers = (directory: string) => {
  const edit = (path: string, from: string, to: string) => {
    const text = readFileSync(join(directory, path), "utf8")
    expect(text).toContain(from)
    writeFileSync(join(directory, path), text.replace(from, to))
  }
  edit("prompts/summary.md", "{{text}}", "{{body}}")
  edit("prompts/summary.md", "title: Summary", "title: Brief summary")
  edit("prompts/Support/agent.md", "type: system", "type: user")
}

const breakingChanges = [
  "These changes can break applications:",
  "summary: name: summary → brief-summary; slots: −text +body",
  "support-agent: type: system → user",
  ""
]

const scratch = makeTestDirectory("check-")
const copy = (name: string) => {
  const directory = join(scratch, name)
  cpSync(example, directory, { recursive: true })
  return directory
}

it("check prints the names, types and slots of the prompts, without a database", async () => {
  expect(await run(["check", example])).toEqual(
    makeSuccess(
      "NAME           TYPE      SLOTS  FILE",
      "support-agent  system    shop   prompts/Support/agent.md",
      "summary        template  text   prompts/summary.md"
    )
  )
  expect(await runJson(["check", example, "--against", example], {})).toEqual({
    prompts: [
      { name: "support-agent", type: "system", slots: ["shop"], path: "prompts/Support/agent.md" },
      { name: "summary", type: "template", slots: ["text"], path: "prompts/summary.md" }
    ],
    caller_changes: [],
    warnings: []
  })
})

it("check --against prints the changes that can break applications, and then exits with 2", async () => {
  const changed = copy("changed")
  breakCallers(changed)
  const result = await run(["check", changed, "--against", example])
  expect(result).toMatchObject({ code: 2, stderr: "" })
  expect(result.stdout.split("\n").slice(4, -1)).toEqual(breakingChanges)
  rmSync(join(changed, "prompts/summary.md"))
  const json = await run(["check", changed, "--against", example, "--json"])
  expect(JSON.parse(json.stdout).caller_changes).toMatchObject([
    { name: "summary", new_name: null },
    { name: "support-agent", new_type: "user" }
  ])
})

it("check exits with 1 and lists the problems of the directory, or of the directory of --against", async () => {
  const invalid = copy("invalid")
  writeFileSync(join(invalid, "prompts/copy.md"), "---\ntitle: summary!\n---\n")
  const message = "has the name summary, like prompts/copy.md: change one of the titles"
  for (const [args, path] of [
    [[invalid], "prompts/summary.md"],
    [[example, "--against", invalid], join(invalid, "prompts/summary.md")]
  ] as const)
    expect(await run(["check", ...args])).toEqual(
      makeFailure(`${args[0]} has 1 problem:\n${path}: ${message}`)
    )
})

it("the workflow in examples/prompts-as-files checks the files of a pull request, and warns about changes that can break applications", () => {
  const workflow = parse(readFileSync(join(example, ".github/workflows/prompts.yml"), "utf8"))
  const repository = copy("repository")
  const bin = join(scratch, "bin")
  mkdirSync(bin)
  const program = `#!/bin/sh\nexec '${process.execPath}' '${currentProgram}' "$@"\n`
  writeFileSync(join(bin, "prompt-retrieval"), program, { mode: 0o755 })
  const runScript = (script: string, BASE = "") =>
    spawnSync("bash", ["-e", "-c", script], {
      cwd: repository,
      env: { PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}`, HOME: scratch, BASE },
      encoding: "utf8"
    })
  const commit = () => {
    const author = "-c user.name=Ada -c user.email=ada@example.com"
    return runScript(`git add . && git ${author} commit --quiet --message x && git rev-parse HEAD`)
  }
  const findScript = (name: string): string =>
    workflow.jobs.check.steps.find((step: { readonly name?: string }) => step.name === name).run

  expect(runScript("git init --quiet")).toMatchObject({ status: 0 })
  const base = commit().stdout.trim()
  breakCallers(repository)
  expect(commit()).toMatchObject({ status: 0 })
  expect(runScript(findScript("Check the files"))).toMatchObject({ status: 0, stderr: "" })
  const listed = runScript(findScript("List the changes that can break applications"), base)
  expect(listed).toMatchObject({ status: 0 })
  expect(listed.stdout).toContain(breakingChanges.join("\n"))
  expect(listed.stdout).toMatch(/^::warning::/m)
  writeFileSync(join(repository, "prompts/summary.md"), "---\n")
  expect(runScript(findScript("Check the files"))).toMatchObject({ status: 1 })
})
