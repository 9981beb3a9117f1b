import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { run } from "../../support/service.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const dataDir = makeTestDirectory("embedded-root-")
const other = join(makeTestDirectory("embedded-other-"), "other")

it.each(["pg_hba.conf", "pg_ident.conf", "postmaster.pid"])(
  "a process of root neither reads nor changes a file of root to which the server's user links as %s",
  async (name) => {
    const migrate = () => run(["migrate"], { DATA_DIR: dataDir })
    expect(await migrate()).toMatchObject({ code: 0 })
    const path = join(dataDir, "postgresql", name)
    writeFileSync(other, "1\nsecret\n", { mode: 0o600 })
    rmSync(path, { force: true })
    symlinkSync(other, path)
    const { code } = await migrate()
    expect(readFileSync(other, "utf8")).toBe("1\nsecret\n")
    // The program replaces its own files, but does not replace a lock that it cannot read.
    expect(code).toBe(name === "postmaster.pid" ? 1 : 0)
    rmSync(path, { force: true })
  }
)
