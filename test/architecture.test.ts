import { globSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join, matchesGlob } from "node:path"
import { expect, it } from "vitest"

const root = join(import.meta.dirname, "..")

/**
 * The modules of Effect that the application may import. Effect's modules for HTTP, SQL and sockets are in folders,
 * such as `effect/http`, so the application may not import these modules.
 */
const effect = ["effect/*", "effect/crypto/SecureRandom"]
const core = ["src/application/**", "src/domain/**"]
const anyPackage = ["effect/**", "@effect/**", "node:*", "node:*/*", "yaml"]

const anyCore = [...core, ...anyPackage]
const outbound = [
  "src/application/{ports,observability,cache}/*",
  "src/application/ErrorMessage.ts",
  "src/domain/**",
  ...anyPackage
]
const inbound = ["src/adapters/inbound/contract/*", ...anyCore]

/** Makes the same rule for each adapter of a folder, so that no adapter imports another adapter. */
const makeAdapterRules = (folder: string, mayImport: ReadonlyArray<string>) =>
  Object.fromEntries(readdirSync(join(root, folder)).map((adapter) => [`${folder}/${adapter}/**`, mayImport]))

/**
 * Maps a pattern of files to the patterns of the files and packages that these files may import. Files of one pattern
 * may also import each other. If several patterns match a file, only the last pattern applies.
 *
 * Imports point from adapters to the application and the domain, and from the application to the domain. An adapter
 * imports no other adapter, with two exceptions: the inbound adapters share the folder `contract`, and `mcp` is an
 * endpoint of `http`.
 */
const rules: Readonly<Record<string, ReadonlyArray<string>>> = {
  "src/*.ts": ["src/**", ...anyPackage],
  "src/runtime/**": ["src/adapters/**", "src/demo/*", ...anyCore],
  "src/testing/**": ["src/adapters/outbound/memory/*", ...anyCore],
  "src/domain/**": ["effect/{Order,Predicate,Result,Schema,SchemaTransformation,Struct}"],
  "src/domain/ApiKey.ts": ["src/domain/**", "effect/{Result,Schema}", "node:crypto"],
  "src/application/**": [...core, ...effect],
  "src/application/ports/*": ["src/domain/**", "effect/{Context,Data,Effect,Predicate,Result}"],
  "src/application/transfer/**": ["src/domain/**", "node:{crypto,path}", "yaml", ...effect],
  ...makeAdapterRules("src/adapters/inbound", inbound),
  "src/adapters/inbound/contract/**": anyCore,
  "src/adapters/inbound/mcp/**": ["src/adapters/inbound/http/**", "@modelcontextprotocol/server", ...inbound],
  ...makeAdapterRules("src/adapters/outbound", outbound),
  "src/adapters/outbound/memory/**": ["src/application/transfer/Archive.ts", ...outbound],
  "src/adapters/outbound/rate-limiter/**": ["redis", ...outbound],
  "client/src/**": [],
  "client/src/pull/*": ["client/src/**", "node:*", "node:*/*"]
}

const specifierPattern = /^(?:import|export)\b[^"`]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"/gm

/** Returns the specifiers of all imports and re-exports in a module. Ignores comments. */
const findSpecifiers = (source: string): ReadonlyArray<string> =>
  [...source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "").matchAll(specifierPattern)].map(
    ([, ...groups]) => groups.find((group) => group !== undefined)!
  )

/** Returns the path of an imported file in this repository. Returns the specifier itself if it names a package. */
const resolveImport = (file: string, specifier: string): string =>
  specifier.startsWith(".") ? join(dirname(file), specifier) : specifier

/** Returns the forbidden imports of a module. A file without a rule may import nothing. */
const findViolations = (file: string, source: string): ReadonlyArray<string> => {
  const rule = Object.entries(rules).findLast(([files]) => matchesGlob(file, files)) ?? []
  const mayImport = rule.flat()
  return findSpecifiers(source)
    .map((specifier) => resolveImport(file, specifier))
    .filter((target) => !mayImport.some((pattern) => matchesGlob(target, pattern)))
    .map((target) => `${file} imports ${target}`)
}

const files = globSync(["src/**/*.ts", "client/src/**/*.ts"], { cwd: root })

it("every file of src and client/src imports only what its architecture rule allows", () => {
  expect(files.length).toBeGreaterThan(100)
  const violations = files.flatMap((file) => findViolations(file, readFileSync(join(root, file), "utf8")))
  expect(violations).toEqual([])
})

it.each([
  ["src/application/Prompts.ts", 'export * from "../../adapters/outbound/postgres/Database.ts"'],
  ["src/adapters/inbound/http/App.ts", 'const load = () => import("../../outbound/postgres/Database.ts")'],
  ["src/adapters/outbound/postgres/Database.ts", 'import "../../../runtime/Service.ts"']
])("the architecture rules reject this import in %s: %s", (file, source) => {
  expect(findViolations(file, source)).toHaveLength(1)
})
