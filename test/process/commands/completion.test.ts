import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, it } from "vitest"
import { runInProcess } from "../../support/services/commandLine.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const script = join(makeTestDirectory("completion-"), "bash")

beforeAll(async () => {
  const { code, stdout } = await runInProcess(["completion", "bash"])
  expect(code).toBe(0)
  writeFileSync(script, stdout)
})

it.each([
  ["prompt-retrieval ke\t", "keys"],
  ["prompt-retrieval keys iss\t--work\tAcme", "keys issue --workspace Acme"],
  ["prompt-retrieval workspaces set Acme --tier so\t", "workspaces set Acme --tier solo"],
  ["prompt-retrieval completion fi\t", "completion fish"]
])("bash completes %j to %s", (line, completed) => {
  // The function prints the arguments that the command gets.
  const print = 'prompt-retrieval() { printf "arguments<%s>\\n" "$*"; }'
  const { stdout } = spawnSync("script", ["-qec", "bash --norc --noprofile -i", "/dev/null"], {
    input: [`source ${script}`, print, line, "exit", ""].join("\n"),
    encoding: "utf8",
    env: { PATH: process.env.PATH, TERM: "dumb", INPUTRC: "/dev/null" },
    timeout: 20_000
  })
  expect(/arguments<([^%>]*)>/.exec(stdout)?.[1]).toBe(completed)
})
