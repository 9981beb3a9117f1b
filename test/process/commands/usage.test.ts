import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { run } from "../../support/service.ts"
import { expectFailure } from "./suite.ts"

const scratch = mkdtempSync(join(tmpdir(), "usage-"))
afterAll(() => rmSync(scratch, { recursive: true }))

const unknownId = "00000000-0000-0000-0000-000000000000"
const env = { DATA_DIR: join(scratch, "never") }

const wrongUsages: ReadonlyArray<readonly [args: ReadonlyArray<string>, message: RegExp]> = [
  [["import", scratch], /is a directory: add --workspace ID/],
  [["export", "--workspace", unknownId, "--format", "files"], /add --out DIR/],
  [["workspaces", "set", unknownId], /nothing to set/],
  [["workspaces", "set", unknownId, "--tier", "gold"], /Invalid value for flag --tier/],
  [["workspaces"], /SUBCOMMANDS/],
  [["keys", "issue"], /Missing required flag/],
  [["nonsense"], /nonsense/]
]

it.each(wrongUsages)(
  "%j exits with 2 and a message without a stack, and opens no database",
  async (args, message) => {
    expectFailure(args, await run(args, env), 2, message)
    expect(existsSync(env.DATA_DIR)).toBe(false)
  }
)

it("--help of a command prints its flags on stdout and exits with 0", async () => {
  const help = await run(["keys", "issue", "--help"], env)
  expect(help).toMatchObject({ code: 0, stderr: "" })
  expect(help.stdout).toContain("--workspace")
})
