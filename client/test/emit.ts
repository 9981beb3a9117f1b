import { execFileSync } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dirname, "../..")

export const clientFolder = join(root, "client/src")

/** Runs tsc on a folder's own tsconfig; what it complains about is what it fails with. */
const compile = (folder: string, settings: object): void => {
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings))
  try {
    execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", folder], { encoding: "utf8", stdio: "pipe" })
  } catch (error) {
    throw new Error((error as { stdout?: string }).stdout || String(error))
  }
}

const strict = {
  target: "ES2022",
  module: "NodeNext",
  moduleResolution: "NodeNext",
  strict: true,
  exactOptionalPropertyTypes: true,
  types: []
}

/**
 * The client as JavaScript and declarations, in a folder of its own that whoever asks has to remove. It is compiled with
 * the web's types alone, so that it can't use anything that only Node has.
 */
export const emitClient = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "client-"))
  writeFileSync(join(folder, "package.json"), '{"type":"module"}')
  compile(folder, {
    compilerOptions: {
      ...strict,
      lib: ["ES2024", "DOM", "DOM.Iterable"],
      allowImportingTsExtensions: true,
      rewriteRelativeImportExtensions: true,
      erasableSyntaxOnly: true,
      verbatimModuleSyntax: true,
      declaration: true,
      rootDir: clientFolder,
      outDir: folder
    },
    files: [join(clientFolder, "index.ts")]
  })
  return folder
}

/** Compiles what uses the emitted client as its users do, with the given libraries and no other types. */
export const compileUsers = (
  emitted: string,
  sources: Readonly<Record<string, string>>,
  lib: ReadonlyArray<string>
): void => {
  const folder = mkdtempSync(join(emitted, "users-"))
  for (const [name, source] of Object.entries(sources)) writeFileSync(join(folder, name), source)
  compile(folder, {
    compilerOptions: {
      ...strict,
      lib,
      noEmit: true,
      skipLibCheck: false,
      paths: { "prompt-retrieval/client": [join(emitted, "index.d.ts")] }
    },
    files: Object.keys(sources)
  })
}
