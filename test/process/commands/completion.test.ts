import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { run } from "../../support/service.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const scratch = makeTestDirectory("completion-")

const shells = ["bash", "zsh", "fish"]
const isInstalled = (program: string) => spawnSync(program, ["--version"]).status === 0
const fileOf = (shell: string) => join(scratch, shell)

beforeAll(async () => {
  for (const shell of shells) {
    const script = await run(["completion", shell], {})
    expect(script).toMatchObject({ code: 0, stderr: "" })
    writeFileSync(fileOf(shell), script.stdout)
  }
})

// Only bash must be installed. The other shells are tested if they are installed.
it.each(shells.filter((shell) => shell === "bash" || isInstalled(shell)))(
  "%s accepts its completion script",
  (shell) => {
    const { status, stderr } = spawnSync(shell, ["-n", fileOf(shell)], { encoding: "utf8" })
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" })
  }
)

describe("completion in bash on a terminal", () => {
  /**
   * Types a line into an interactive bash that has loaded the completion script. Returns the arguments that the command
   * gets.
   */
  const type = (line: string): string | undefined => {
    const input = [
      `source ${fileOf("bash")}`,
      'prompt-retrieval() { printf "arguments<%s>\\n" "$*"; }',
      line,
      "exit",
      ""
    ].join("\n")
    const { stdout } = spawnSync("script", ["-qec", "bash --norc --noprofile -i", "/dev/null"], {
      input,
      encoding: "utf8",
      env: { PATH: process.env.PATH, TERM: "dumb", INPUTRC: "/dev/null" },
      timeout: 20_000
    })
    return /arguments<([^%>]*)>/.exec(stdout)?.[1]
  }

  it.each([
    ["prompt-retrieval ke\t", "keys"],
    ["prompt-retrieval keys iss\t--work\tAcme", "keys issue --workspace Acme"],
    ["prompt-retrieval workspaces set Acme --tier so\t", "workspaces set Acme --tier solo"],
    ["prompt-retrieval completion fi\t", "completion fish"]
  ])("bash completes %j to %s", (line, completed) => {
    expect(type(line)).toBe(completed)
  })
})
