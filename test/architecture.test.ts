import { globSync, readFileSync } from "node:fs"
import { dirname, join, matchesGlob } from "node:path"
import { describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "..")

interface Rule {
  /** A pattern of files. If several rules match a file, only the last of these rules applies. */
  readonly files: string
  /** Patterns of the files and packages that these files may import. */
  readonly mayImport: ReadonlyArray<string>
}

/**
 * The modules of Effect that the application may import. Effect's modules for HTTP, SQL and sockets are in folders,
 * such as `effect/http`, so the application may not import these modules.
 */
const effect = ["effect/*", "effect/crypto/SecureRandom"]
const core = ["src/application/**", "src/domain/**"]
const anyPackage = ["effect/**", "@effect/**", "node:*", "node:*/*", "yaml", "diff"]

/**
 * Imports point from adapters to the application and the domain, and from the application to the domain. An adapter
 * imports no other adapter, with two exceptions: the inbound adapters share the folder `contract`, and `mcp` is an endpoint
 * of `http`.
 */
const rules: ReadonlyArray<Rule> = [
  { files: "src/*.ts", mayImport: ["src/**", ...anyPackage] },
  {
    files: "src/runtime/**",
    mayImport: ["src/adapters/**", "src/runtime/**", "src/demo/*", ...core, ...anyPackage]
  },
  {
    files: "src/testing/**",
    mayImport: ["src/testing/**", "src/adapters/outbound/memory/*", ...core, ...anyPackage]
  },
  {
    files: "src/domain/**",
    mayImport: ["src/domain/**", "effect/{Predicate,Result,Schema,SchemaTransformation,Struct}"]
  },
  { files: "src/domain/ApiKey.ts", mayImport: ["src/domain/**", "effect/{Result,Schema}", "node:crypto"] },
  { files: "src/application/**", mayImport: [...core, ...effect] },
  {
    files: "src/application/ports/*",
    mayImport: ["src/application/ports/*", "src/domain/**", "effect/{Context,Effect,Result}"]
  },
  {
    files: "src/application/transfer/**",
    mayImport: [
      "src/application/transfer/**",
      "src/domain/**",
      "node:{crypto,path}",
      "diff",
      "yaml",
      ...effect
    ]
  },
  {
    files: "src/adapters/inbound/contract/*",
    mayImport: ["src/adapters/inbound/contract/*", ...core, ...anyPackage]
  },
  ...Object.entries({
    cli: [],
    embedding: [],
    http: [],
    mcp: ["src/adapters/inbound/http/**", "@modelcontextprotocol/server"]
  }).map(([name, others]) => ({
    files: `src/adapters/inbound/${name}/**`,
    mayImport: [
      `src/adapters/inbound/${name}/**`,
      "src/adapters/inbound/contract/*",
      ...others,
      ...core,
      ...anyPackage
    ]
  })),
  ...Object.entries({ memory: [], postgres: [], "rate-limiter": ["redis"] }).map(([name, packages]) => ({
    files: `src/adapters/outbound/${name}/**`,
    mayImport: [`src/adapters/outbound/${name}/**`, ...packages, ...core, ...anyPackage]
  })),
  { files: "client/src/**", mayImport: ["client/src/**"] },
  { files: "client/src/pull/*", mayImport: ["client/src/**", "node:*", "node:*/*"] }
]

const specifierPattern = /^(?:import|export)\b[^"`]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"/gm

/** Returns the specifiers of all imports and re-exports in a module. Ignores comments. */
const findSpecifiers = (source: string): ReadonlyArray<string> =>
  [...source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "").matchAll(specifierPattern)].map(
    ([, ...groups]) => groups.find((group) => group !== undefined)!
  )

/** Returns the path of an imported file in this repository. Returns the specifier itself if it names a package. */
const resolveImport = (file: string, specifier: string): string =>
  specifier.startsWith(".") ? join(dirname(file), specifier) : specifier

const findRule = (file: string): Rule | undefined => rules.findLast(({ files }) => matchesGlob(file, files))

/** Returns the forbidden imports of a module. A file without a rule may import nothing. */
const findViolations = (file: string, source: string): ReadonlyArray<string> => {
  const mayImport = findRule(file)?.mayImport ?? []
  return findSpecifiers(source)
    .map((specifier) => resolveImport(file, specifier))
    .filter((target) => !mayImport.some((pattern) => matchesGlob(target, pattern)))
    .map((target) => `${file} imports ${target}`)
}

const files = globSync(["src/**/*.ts", "client/src/**/*.ts"], { cwd: root })

describe("the imports of all files", () => {
  it("every file of src and client/src imports only what its architecture rule allows", () => {
    expect(files.length).toBeGreaterThan(100)
    const violations = files.flatMap((file) => findViolations(file, readFileSync(join(root, file), "utf8")))
    expect(violations).toEqual([])
  })

  it.each([
    ["src/application/reading/Prompts.ts", 'export * from "../../adapters/outbound/postgres/Database.ts"'],
    ["src/adapters/inbound/http/App.ts", 'const load = () => import("../../outbound/postgres/Database.ts")'],
    ["src/adapters/outbound/postgres/Database.ts", 'import "../../../runtime/Service.ts"']
  ])("the architecture rules reject this import in %s: %s", (file, source) => {
    expect(findViolations(file, source)).toHaveLength(1)
  })
})
