import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const unit = "prompt-retrieval.service"
const path = join(import.meta.dirname, "../../../deploy", unit)
const text = readFileSync(path, "utf8")

describe("deploy/prompt-retrieval.service", () => {
  /** A directory like the root of a machine. It contains the program, its unit and the units of the systemd package. */
  const machine = makeTestDirectory("systemd-")
  const installed = join(machine, "etc/systemd/system", unit)
  const program = join(machine, /^ExecStart=(\S+)/m.exec(text)![1]!)
  for (const file of [installed, program]) mkdirSync(dirname(file), { recursive: true })
  cpSync("/usr/lib/systemd/system", join(machine, "usr/lib/systemd/system"), {
    recursive: true,
    verbatimSymlinks: true
  })
  symlinkSync("usr/lib", join(machine, "lib"))
  writeFileSync(program, "")
  chmodSync(program, 0o755)

  const verify = (content: string) => {
    writeFileSync(installed, content)
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", `--root=${machine}`, unit], {
      encoding: "utf8"
    })
    return { status, stderr }
  }

  it("systemd-analyze verify finds no problem in deploy/prompt-retrieval.service", () => {
    expect(verify(text)).toEqual({ status: 0, stderr: "" })
  })

  it("systemd-analyze security rates the sandbox of deploy/prompt-retrieval.service as OK", () => {
    const { status, stdout } = spawnSync(
      "systemd-analyze",
      ["security", "--offline=true", "--threshold=20", "--no-pager", path],
      { encoding: "utf8" }
    )
    expect({ status, rating: stdout.trim().split("\n").at(-1) }).toEqual({
      status: 0,
      rating: expect.stringContaining("OK")
    })
  })
})
