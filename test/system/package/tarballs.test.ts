import { join } from "node:path"
import { expect, it } from "vitest"
import { pack, run } from "../../support/programs/packages.ts"
import { findTool } from "../../support/programs/tools.ts"

const root = join(import.meta.dirname, "../../..")

it.each([
  ["service", root],
  ["client", join(root, "client")]
])("publint and are-the-types-wrong find no problem in the tarball of the %s", async (_, folder) => {
  const tarball = await pack(folder)
  expect(await run(root, findTool(".bin/publint"), ["--strict", tarball])).toMatchObject({ code: 0 })
  expect(await run(root, findTool(".bin/attw"), ["--profile", "esm-only", tarball])).toMatchObject({
    code: 0
  })
})
