import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, matchesGlob } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"

const root = join(import.meta.dirname, "..")
const { vcs: _, $schema: __, ...biome } = JSON.parse(readFileSync(join(root, "biome.json"), "utf8"))

interface Override {
  readonly includes: ReadonlyArray<string>
  readonly linter: { readonly rules: { readonly style: { readonly noRestrictedImports?: object } } }
}

/** The import rules. The other overrides of biome.json concern no import. */
const rules = (biome.overrides as ReadonlyArray<Override>).filter(
  ({ linter }) => linter.rules.style.noRestrictedImports !== undefined
)

/** A temporary tree with the project's rules, so that planted files never appear in the real one. */
let tree: string
beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), "architecture-"))
  writeFileSync(join(tree, "biome.json"), JSON.stringify(biome))
})
afterAll(() => rmSync(tree, { recursive: true }))

/** Counts the import rule's errors for a file with one import. */
const countViolations = (file: string, specifier: string): number => {
  const path = join(tree, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `import { it } from "${specifier}"\nexport const planted = it\n`)
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

const violations: ReadonlyArray<readonly [file: string, specifier: string]> = [
  ["src/domain/Planted.ts", "../application/Prompts.ts"],
  ["src/domain/Planted.ts", "../application/ports/PromptRepo.ts"],
  ["src/domain/Planted.ts", "../adapters/inbound/http/contract/Api.ts"],
  ["src/domain/Planted.ts", "effect/Effect"],
  ["src/domain/Planted.ts", "effect/Clock"],
  ["src/domain/Planted.ts", "node:crypto"],
  ["src/domain/ApiKey.ts", "node:fs"],
  ["src/domain/ApiKey.ts", "../application/Admission.ts"],
  ["src/application/Planted.ts", "../adapters/outbound/postgres/Database.ts"],
  ["src/application/Planted.ts", "../runtime/Config.ts"],
  ["src/application/Planted.ts", "@effect/sql-pg/PgClient"],
  ["src/application/Planted.ts", "@effect/platform-node/NodeHttpServer"],
  ["src/application/Planted.ts", "effect/http/HttpRouter"],
  ["src/application/Planted.ts", "effect/http-api/HttpApi"],
  ["src/application/Planted.ts", "effect/sql/SqlClient"],
  ["src/application/Planted.ts", "effect/cli/Command"],
  ["src/application/Planted.ts", "node:fs"],
  ["src/application/formats/Planted.ts", "../ports/PromptRepo.ts"],
  ["src/application/formats/Planted.ts", "../Administration.ts"],
  ["src/application/formats/Planted.ts", "../../adapters/inbound/cli/ArchiveFile.ts"],
  ["src/application/formats/Planted.ts", "node:fs"],
  ["src/application/ports/Planted.ts", "../Admission.ts"],
  ["src/application/ports/Planted.ts", "../formats/Archive.ts"],
  ["src/application/ports/Planted.ts", "../../adapters/outbound/postgres/Database.ts"],
  ["src/application/ports/Planted.ts", "effect/Schema"],
  ["src/adapters/outbound/postgres/Planted.ts", "../caching/SingleFlight.ts"],
  ["src/adapters/outbound/postgres/Planted.ts", "../../inbound/http/App.ts"],
  ["src/adapters/outbound/postgres/Planted.ts", "../../../runtime/Config.ts"],
  ["src/adapters/inbound/http/Planted.ts", "../cli/Commands.ts"],
  ["src/adapters/inbound/http/Planted.ts", "../../outbound/postgres/Database.ts"],
  ["src/adapters/inbound/http/Planted.ts", "../../../index.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../cli/Commands.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../../outbound/postgres/Database.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../../../runtime/Config.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../../../index.ts"],
  ["src/adapters/outbound/postgres/migrations/Planted.ts", "../../caching/SingleFlight.ts"],
  ["src/adapters/outbound/postgres/pglite/Planted.ts", "../../../inbound/http/App.ts"],
  ["src/adapters/inbound/cli/Planted.ts", "../http/App.ts"],
  ["src/adapters/inbound/cli/Planted.ts", "../../outbound/memory/Memory.ts"],
  ["src/adapters/inbound/cli/Planted.ts", "../../../runtime/Config.ts"],
  ["src/adapters/inbound/embedding/Planted.ts", "../http/App.ts"],
  ["src/adapters/inbound/embedding/Planted.ts", "../http/transport/WebHandler.ts"],
  ["src/adapters/inbound/embedding/Planted.ts", "../../outbound/postgres/Database.ts"],
  ["src/adapters/inbound/embedding/Planted.ts", "../../../demo/workspace.json"],
  ["client/src/Planted.ts", "../../src/domain/Page.ts"],
  ["client/src/Planted.ts", "effect/Schema"],
  ["client/src/Planted.ts", "node:crypto"]
]

const allowedImports: ReadonlyArray<readonly [file: string, specifier: string]> = [
  ["src/domain/Planted.ts", "./Page.ts"],
  ["src/domain/Planted.ts", "effect/Schema"],
  ["src/domain/ApiKey.ts", "node:crypto"],
  ["src/application/Planted.ts", "../domain/Page.ts"],
  ["src/application/Planted.ts", "./ports/PromptRepo.ts"],
  ["src/application/Planted.ts", "./formats/Archive.ts"],
  ["src/application/Planted.ts", "effect/Effect"],
  ["src/application/Planted.ts", "effect/crypto/SecureRandom"],
  ["src/application/formats/Planted.ts", "./Archive.ts"],
  ["src/application/formats/Planted.ts", "../../domain/Page.ts"],
  ["src/application/formats/Planted.ts", "effect/Schema"],
  ["src/application/ports/Planted.ts", "./Unavailable.ts"],
  ["src/application/ports/Planted.ts", "../../domain/Page.ts"],
  ["src/application/ports/Planted.ts", "effect/Context"],
  ["src/adapters/outbound/postgres/Planted.ts", "./Database.ts"],
  ["src/adapters/outbound/postgres/Planted.ts", "./pglite/EmbeddedPostgres.ts"],
  ["src/adapters/outbound/postgres/Planted.ts", "../../../application/ports/PromptRepo.ts"],
  ["src/adapters/outbound/postgres/Planted.ts", "../../../domain/Page.ts"],
  ["src/adapters/outbound/postgres/Planted.ts", "@effect/sql-pg/PgClient"],
  ["src/adapters/inbound/http/Planted.ts", "./transport/Server.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../../../application/Prompts.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../../../domain/Page.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../contract/Api.ts"],
  ["src/adapters/inbound/http/docs/Planted.ts", "../../../../demo/workspace.json"],
  ["src/adapters/outbound/postgres/migrations/Planted.ts", "../Database.ts"],
  ["src/adapters/inbound/cli/Planted.ts", "./Flags.ts"],
  ["src/adapters/inbound/cli/Planted.ts", "../../../application/Administration.ts"],
  ["src/adapters/inbound/cli/Planted.ts", "../../../demo/workspace.json"],
  ["src/adapters/inbound/embedding/Planted.ts", "../http/contract/Api.ts"],
  ["src/adapters/inbound/embedding/Planted.ts", "../../../application/Prompts.ts"],
  ["client/src/Planted.ts", "./Errors.ts"],
  ["src/runtime/Planted.ts", "../adapters/outbound/postgres/Database.ts"],
  ["src/index.ts", "./adapters/inbound/http/App.ts"]
]

it.each(violations)("the linter rejects an import that points outwards: %s imports %s", (file, specifier) => {
  expect(countViolations(file, specifier)).toBe(1)
})

it.each(allowedImports)(
  "the linter accepts an import that points inwards: %s imports %s",
  (file, specifier) => {
    expect(countViolations(file, specifier)).toBe(0)
  }
)

/** Returns the import rule that governs a file: the last one of biome.json that includes it. */
const findRule = (file: string) =>
  rules.findLast(({ includes }) => includes.some((pattern) => matchesGlob(file, pattern)))

it.each(rules.map((rule) => [rule.includes.join(", "), rule] as const))(
  "the import rule of %s has a planted violation and an allowed import",
  (_, rule) => {
    expect(violations.some(([file]) => findRule(file) === rule)).toBe(true)
    expect(allowedImports.some(([file]) => findRule(file) === rule)).toBe(true)
  }
)
