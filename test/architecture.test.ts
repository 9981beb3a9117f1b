import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, matchesGlob } from "node:path"
import { beforeAll, expect, it } from "vitest"

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

type Case = readonly [file: string, specifier: string]

/** Counts the import rule's errors in files with one import each. The files must be different. */
const countErrors = (cases: ReadonlyArray<Case>): ReadonlyArray<number> => {
  // A temporary tree with the project's rules, so that planted files never appear in the real one.
  const tree = mkdtempSync(join(tmpdir(), "architecture-"))
  writeFileSync(join(tree, "biome.json"), JSON.stringify(biome))
  for (const [file, specifier] of cases) {
    mkdirSync(dirname(join(tree, file)), { recursive: true })
    writeFileSync(join(tree, file), `import { it } from "${specifier}"\nexport const planted = it\n`)
  }
  const { stdout, status } = spawnSync(
    join(root, "node_modules/.bin/biome"),
    ["lint", "--only=style/noRestrictedImports", "--reporter=json", "--max-diagnostics=none", "."],
    { cwd: tree, encoding: "utf8" }
  )
  rmSync(tree, { recursive: true })
  const { diagnostics, summary } = JSON.parse(stdout)
  // The linter has looked at every file and at its own configuration.
  expect(summary.unchanged).toBe(cases.length + 1)
  expect(status).toBe(summary.errors === 0 ? 0 : 1)
  const paths: ReadonlyArray<string> = diagnostics.map(
    ({ location }: { readonly location: { readonly path: string } }) => location.path
  )
  return cases.map(([file]) => paths.filter((path) => path === file).length)
}

const violations: ReadonlyArray<Case> = [
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
  ["src/application/formats/Planted.ts", "node:crypto"],
  ["src/application/formats/ContentHash.ts", "node:fs"],
  ["src/application/formats/ContentHash.ts", "../ports/PromptRepo.ts"],
  ["src/application/ports/Planted.ts", "../Admission.ts"],
  ["src/application/ports/Planted.ts", "../formats/Archive.ts"],
  ["src/application/ports/Planted.ts", "../../adapters/outbound/postgres/Database.ts"],
  ["src/application/ports/Planted.ts", "effect/Schema"],
  ["src/adapters/outbound/postgres/Planted.ts", "../caching/CachingKeyStore.ts"],
  ["src/adapters/outbound/postgres/Planted.ts", "../../inbound/http/App.ts"],
  ["src/adapters/outbound/postgres/Planted.ts", "../../../runtime/Config.ts"],
  ["src/adapters/inbound/http/Planted.ts", "../cli/Commands.ts"],
  ["src/adapters/inbound/http/Planted.ts", "../../outbound/postgres/Database.ts"],
  ["src/adapters/inbound/http/Planted.ts", "../../../index.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../cli/Commands.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../../outbound/postgres/Database.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../../../runtime/Config.ts"],
  ["src/adapters/inbound/http/transport/Planted.ts", "../../../../index.ts"],
  ["src/adapters/outbound/postgres/migrations/Planted.ts", "../../caching/CachingKeyStore.ts"],
  ["src/adapters/outbound/postgres/embedded/Planted.ts", "../../../inbound/http/App.ts"],
  ["src/adapters/inbound/cli/Planted.ts", "../http/App.ts"],
  ["src/adapters/inbound/cli/Planted.ts", "../../outbound/memory/Memory.ts"],
  ["src/adapters/inbound/cli/Planted.ts", "../../../runtime/Config.ts"],
  ["src/adapters/inbound/embedding/Planted.ts", "../http/App.ts"],
  ["src/adapters/inbound/embedding/Planted.ts", "../http/transport/WebHandler.ts"],
  ["src/adapters/inbound/embedding/Planted.ts", "../../outbound/postgres/Database.ts"],
  ["src/adapters/inbound/embedding/Planted.ts", "../../../demo/workspace.json"],
  ["src/adapters/inbound/mcp/Planted.ts", "../http/App.ts"],
  ["src/adapters/inbound/mcp/Planted.ts", "../cli/Commands.ts"],
  ["src/adapters/inbound/mcp/Planted.ts", "../../outbound/postgres/Database.ts"],
  ["src/adapters/inbound/mcp/Planted.ts", "../../../runtime/Config.ts"],
  ["client/src/Planted.ts", "../../src/domain/Page.ts"],
  ["client/src/Planted.ts", "effect/Schema"],
  ["client/src/Planted.ts", "node:crypto"],
  ["client/src/pull/Planted.ts", "../../../src/domain/Page.ts"],
  ["client/src/pull/Planted.ts", "effect/Effect"]
]

const allowedImports: ReadonlyArray<Case> = [
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
  ["src/application/formats/ContentHash.ts", "node:crypto"],
  ["src/application/ports/Planted.ts", "./Unavailable.ts"],
  ["src/application/ports/Planted.ts", "../../domain/Page.ts"],
  ["src/application/ports/Planted.ts", "effect/Context"],
  ["src/adapters/outbound/postgres/Planted.ts", "./Database.ts"],
  ["src/adapters/outbound/postgres/Planted.ts", "./embedded/EmbeddedPostgres.ts"],
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
  ["src/adapters/inbound/mcp/Planted.ts", "./JsonRpc.ts"],
  ["src/adapters/inbound/mcp/Planted.ts", "../http/contract/Errors.ts"],
  ["src/adapters/inbound/mcp/Planted.ts", "../../../application/Prompts.ts"],
  ["client/src/Planted.ts", "./Errors.ts"],
  ["client/src/pull/Planted.ts", "../Errors.ts"],
  ["client/src/pull/Planted.ts", "./CommandError.ts"],
  ["client/src/pull/Planted.ts", "node:fs"],
  ["src/runtime/Planted.ts", "../adapters/outbound/postgres/Database.ts"],
  ["src/index.ts", "./adapters/inbound/http/App.ts"]
]

/** The number of errors of each case. One run of the linter checks the first case of each file, the next one the second. */
const errors = new Map<Case, number>()
beforeAll(() => {
  const byFile = [...Map.groupBy([...violations, ...allowedImports], ([file]) => file).values()]
  for (let round = 0; byFile.some((cases) => cases.length > round); round++) {
    const cases = byFile.flatMap((cases) => cases.slice(round, round + 1))
    for (const [index, count] of countErrors(cases).entries()) errors.set(cases[index]!, count)
  }
})

const titled = (cases: ReadonlyArray<Case>) => cases.map((planted) => [...planted, planted] as const)

it.each(titled(violations))(
  "the linter rejects an import that points outwards: %s imports %s",
  (_file, _specifier, planted) => {
    expect(errors.get(planted)).toBe(1)
  }
)

it.each(titled(allowedImports))(
  "the linter accepts an import that points inwards: %s imports %s",
  (_file, _specifier, planted) => {
    expect(errors.get(planted)).toBe(0)
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
