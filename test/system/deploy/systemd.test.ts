import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, it } from "vitest"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const unit = "prompt-retrieval.service"
const path = join(import.meta.dirname, "../../../deploy", unit)

const analyze = (args: ReadonlyArray<string>) => spawnSync("systemd-analyze", args, { encoding: "utf8" })

it("systemd-analyze verify finds no problem in deploy/prompt-retrieval.service", () => {
  // A directory like the root of a machine. It contains the program, its unit and the units of the systemd package.
  const machine = makeTestDirectory("systemd-")
  const program = join(machine, /^ExecStart=(\S+)/m.exec(readFileSync(path, "utf8"))![1]!)
  cpSync(path, join(machine, "etc/systemd/system", unit))
  const units = "usr/lib/systemd/system"
  cpSync(join("/", units), join(machine, units), { recursive: true, verbatimSymlinks: true })
  symlinkSync("usr/lib", join(machine, "lib"))
  mkdirSync(dirname(program), { recursive: true })
  writeFileSync(program, "", { mode: 0o755 })
  expect(analyze(["verify", `--root=${machine}`, unit])).toMatchObject({ status: 0, stderr: "" })
})

it("systemd-analyze security rates the sandbox of deploy/prompt-retrieval.service as OK", () => {
  const { status, stdout } = analyze(["security", "--offline=true", "--threshold=20", "--no-pager", path])
  expect({ status, rating: stdout.trim().split("\n").at(-1) }).toEqual({
    status: 0,
    rating: expect.stringContaining("OK")
  })
})
