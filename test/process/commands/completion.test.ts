import { expect, it } from "vitest"
import { currentProgram, runProcess } from "../../support/services/startService.ts"

it.each([
  ["prompt-retrieval ke\t", "keys"],
  ["prompt-retrieval keys iss\t--work\tAcme", "keys issue --workspace Acme"],
  ["prompt-retrieval workspaces set Acme --tier so\t", "workspaces set Acme --tier solo"],
  ["prompt-retrieval completion fi\t", "completion fish"]
])(
  "the script that completion bash prints makes bash complete %j to %s on a terminal",
  async (line, completed) => {
    const source = `source <("${process.execPath}" "${currentProgram}" completion bash)`
    // The function prints the arguments that the command gets.
    const print = 'prompt-retrieval() { printf "arguments<%s>\\n" "$*"; }'
    const { stdout } = await runProcess(
      "script",
      ["-qec", "bash --norc --noprofile -i", "/dev/null"],
      { env: { PATH: process.env.PATH, TERM: "dumb", INPUTRC: "/dev/null" } },
      [source, print, line, "exit", ""].join("\n")
    )
    expect(/arguments<([^%>]*)>/.exec(stdout)?.[1]).toBe(completed)
  }
)
