import { spawn } from "node:child_process"
import { once } from "node:events"
import { expect, it } from "vitest"
import { makeTenant, prompt } from "../../support/archives.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { currentProgram } from "../../support/services/startService.ts"

const { env, sql, importArchive } = makeTestDatabase()

it.each([
  ["deletes the workspace and exits with 0", "its name", "Acme Inc\n", true],
  ["deletes nothing and exits with 1", "another text", "acme inc\n", false],
  ["deletes nothing and exits with 1", "Ctrl+D", "\u0004", false],
  ["deletes nothing and exits with 1", "Ctrl+C", "\u0003", false]
])("on a terminal, workspaces delete %s if the user types %s", async (_, __, line, isDeleted) => {
  const { home, archive } = makeTenant({ workspace: { name: "Acme Inc" }, prompts: [prompt()] })
  await importArchive(archive)
  const command = `${process.execPath} ${currentProgram} workspaces delete ${home.id}`
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: "pipe"
  })
  let output = ""
  let hasTyped = false
  child.stdout.on("data", (chunk) => {
    output += chunk
    if (hasTyped || !output.includes(" to go on: ")) return
    hasTyped = true
    child.stdin.write(line)
  })
  const [code] = await once(child, "close")
  expect(output).toContain(
    isDeleted
      ? `Deleted workspace ${home.id} (Acme Inc) with 1 prompt and 1 key`
      : "not confirmed; nothing was deleted"
  )
  expect(code).toBe(isDeleted ? 0 : 1)
  expect(await sql("select from workspaces where id = $1", [home.id])).toHaveLength(isDeleted ? 0 : 1)
})
