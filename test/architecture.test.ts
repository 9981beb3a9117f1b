import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"

const root = join(import.meta.dirname, "..")

/** A tree of its own with the project's rules, so that what is planted never shows in the real one. */
let tree: string
beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), "architecture-"))
  const { vcs: _, $schema: __, ...rules } = JSON.parse(readFileSync(join(root, "biome.json"), "utf8"))
  writeFileSync(join(tree, "biome.json"), JSON.stringify(rules))
})
afterAll(() => rmSync(tree, { recursive: true }))

/** What the import rule says of a file with one import. */
const violations = (file: string, specifier: string): number => {
  const path = join(tree, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `import { it } from "${specifier}"\nexport const kept = it\n`)
  const { stdout, status } = spawnSync(
    join(root, "node_modules/.bin/biome"),
    ["lint", "--only=style/noRestrictedImports", "--reporter=json", path],
    { cwd: tree, encoding: "utf8" }
  )
  rmSync(path)
  const { errors } = JSON.parse(stdout).summary
  expect(status).toBe(errors === 0 ? 0 : 1)
  return errors
}

it.each([
  ["src/domain/Planted.ts", "../application/Prompts.ts"],
  ["src/domain/Planted.ts", "../adapters/http/Api.ts"],
  ["src/domain/Planted.ts", "effect/Effect"],
  ["src/domain/Planted.ts", "effect/Clock"],
  ["src/domain/Planted.ts", "node:crypto"],
  ["src/domain/ApiKey.ts", "node:fs"],
  ["src/application/Planted.ts", "../adapters/postgres/Database.ts"],
  ["src/application/Planted.ts", "@effect/sql-pg/PgClient"],
  ["src/application/Planted.ts", "@effect/platform-node/NodeHttpServer"],
  ["src/application/Planted.ts", "effect/http/HttpRouter"],
  ["src/application/Planted.ts", "effect/sql/SqlClient"],
  ["src/application/Planted.ts", "node:fs"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../postgres/Database.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../index.ts"],
  ["src/adapters/outbound/postgres/migrations/Planted.ts", "../../http/Api.ts"],
  ["client/src/Planted.ts", "../../domain/Page.ts"],
  ["client/src/Planted.ts", "effect/Schema"]
])("an import that points outwards is a violation: %s imports %s", (file, specifier) => {
  expect(violations(file, specifier)).toBe(1)
})

it.each([
  ["src/domain/Planted.ts", "./Page.ts"],
  ["src/domain/Planted.ts", "effect/Schema"],
  ["src/domain/ApiKey.ts", "node:crypto"],
  ["src/application/Planted.ts", "../domain/Page.ts"],
  ["src/application/Planted.ts", "effect/Effect"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../application/Prompts.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../domain/Page.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "./Api.ts"],
  ["client/src/Planted.ts", "./Errors.ts"],
  ["src/adapters/outbound/postgres/migrations/Planted.ts", "../Database.ts"],
  ["src/index.ts", "./adapters/http/Api.ts"]
])("an import that points inwards is none: %s imports %s", (file, specifier) => {
  expect(violations(file, specifier)).toBe(0)
})
