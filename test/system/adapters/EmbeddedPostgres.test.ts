import { readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { run } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const dataDir = makeTestDirectory("embedded-root-")
const other = join(makeTestDirectory("embedded-other-"), "other")

it.each(["pg_hba.conf", "PG_VERSION", "postmaster.pid"])(
  "as root, migrate exits with 1 if %s of the embedded database is a symbolic link, and neither prints nor changes the linked file",
  async (name) => {
    const migrate = () => run(["migrate"], { DATA_DIR: dataDir })
    expect(await migrate()).toMatchObject({ code: 0 })
    const path = join(dataDir, "postgresql", name)
    writeFileSync(path, "", { flag: "a" })
    renameSync(path, `${path}.original`)
    writeFileSync(other, "18\nsecret\n", { mode: 0o600 })
    symlinkSync(other, path)
    const { code, stderr } = await migrate()
    expect(code).toBe(1)
    expect(stderr).not.toContain("secret")
    expect(readFileSync(other, "utf8")).toBe("18\nsecret\n")
    rmSync(path)
    if (name !== "postmaster.pid") renameSync(`${path}.original`, path)
  }
)
