import { spawn } from "node:child_process"
import { once } from "node:events"
import { describe, expect, it } from "vitest"
import { makeTenant, prompt } from "../../support/archives.ts"
import { currentProgram } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"

describe("workspaces delete on a terminal", () => {
  const { env, sql, importArchive } = makeTestDatabase()

  /**
   * Runs a command on a pseudo terminal and types a line when the command asks for confirmation. Returns exit code and
   * output.
   */
  const runOnTerminal = async (command: string, line: string) => {
    const child = spawn("script", ["-qec", `${process.execPath} ${currentProgram} ${command}`, "/dev/null"], {
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
    return { code, output }
  }
  const importWorkspace = async () => {
    const { home, archive } = makeTenant({ workspace: { name: "Acme Inc" }, prompts: [prompt()] })
    await importArchive(archive)
    return home.id
  }
  const exists = async (id: string) => (await sql("select from workspaces where id = $1", [id])).length === 1

  it("on a terminal, workspaces delete deletes the workspace if the user types its name", async () => {
    const id = await importWorkspace()
    const { code, output } = await runOnTerminal(`workspaces delete ${id}`, "Acme Inc\n")
    expect(output).toContain(`Deleted workspace ${id} (Acme Inc) with 1 prompt and 1 key`)
    expect(code).toBe(0)
    expect(await exists(id)).toBe(false)
  })

  it.each([
    ["another text", "acme inc\n"],
    ["nothing", "\n"],
    ["Ctrl+D", "\u0004"],
    ["Ctrl+C", "\u0003"]
  ])(
    "on a terminal, workspaces delete deletes nothing and exits with 1 if the user types %s",
    async (_, line) => {
      const id = await importWorkspace()
      const { code, output } = await runOnTerminal(`workspaces delete ${id}`, line)
      expect(output).toContain("not confirmed; nothing was deleted")
      expect(code).toBe(1)
      expect(await exists(id)).toBe(true)
    }
  )
})
