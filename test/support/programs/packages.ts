import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { type CommandResult, runProcess } from "../services/startService.ts"
import { makeTestDirectory } from "../testDirectory.ts"

const root = join(import.meta.dirname, "../../..")

/** Returns the path of a program that a dev dependency installs. */
export const bin = (name: string): string => join(root, "node_modules/.bin", name)

/** Runs a program to completion and returns its exit code and output. */
export const run = (
  cwd: string,
  command: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
): Promise<CommandResult> => runProcess(command, args, { cwd, env: { ...process.env, ...env } })

/** Creates a temporary ESM project without dependencies. */
export const makeProject = (name: string): string => {
  const directory = makeTestDirectory(`${name}-`)
  writeFileSync(join(directory, "package.json"), JSON.stringify({ name, private: true, type: "module" }))
  return directory
}

const readManifest = (folder: string) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))

/** Creates a package in a project. The package exports the sources of the package in `folder` instead of its `dist`. */
const linkSources = (project: string, folder: string): void => {
  const manifest = readManifest(folder)
  const target = join(project, "node_modules", manifest.name)
  mkdirSync(target, { recursive: true })
  // Node runs TypeScript only outside of node_modules. Node and tsc follow this link to `folder`, which is outside.
  symlinkSync(join(folder, "src"), join(target, "src"))
  const toSource = (path: string) => path.replace("./dist/", "./src/").replace(/(\.d\.ts|\.js)$/, ".ts")
  writeFileSync(
    join(target, "package.json"),
    JSON.stringify(manifest, (_, value) => (typeof value === "string" ? toSource(value) : value))
  )
}

/**
 * Creates a temporary project that can import the sources of both packages, and the given packages of this checkout.
 */
export const makeLinkedProject = (name: string, packages: ReadonlyArray<string> = []): string => {
  const project = makeProject(name)
  const dependencies = Object.keys(readManifest(root).dependencies)
  for (const dependency of ["effect", "@types/node", ...dependencies, ...packages]) {
    const link = join(project, "node_modules", dependency)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(join(root, "node_modules", dependency), link)
  }
  linkSources(project, root)
  linkSources(project, join(root, "client"))
  return project
}

/** Packs the package in a folder and returns the path of the tarball. */
export const pack = async (folder: string): Promise<string> => {
  const directory = makeTestDirectory("tarball-")
  const packed = await run(folder, "npm", ["pack", "--pack-destination", directory])
  if (packed.code !== 0) throw new Error(packed.stderr)
  return join(directory, readdirSync(directory).find((file) => file.endsWith(".tgz"))!)
}

/** Installs a tarball into a project. Returns the output of npm. */
export const install = async (project: string, tarball: string): Promise<string> => {
  const { code, stdout, stderr } = await run(project, "npm", ["install", "--no-audit", "--no-fund", tarball])
  if (code !== 0) throw new Error(stderr)
  return stdout + stderr
}

/** The directory that keeps installed versions of Node between test runs. */
const nodeCache = join(homedir(), ".cache/prompt-retrieval/node")

/** Installs a version of Node from npm unless it is installed. Returns the path of its executable. */
export const installNode = async (version: string): Promise<string> => {
  const target = join(nodeCache, version)
  const node = join(target, "node_modules/node/bin/node")
  if (!existsSync(node)) {
    mkdirSync(nodeCache, { recursive: true })
    const directory = mkdtempSync(join(nodeCache, `${version}-`))
    writeFileSync(
      join(directory, "package.json"),
      JSON.stringify({ private: true, allowScripts: { node: true } })
    )
    const installed = await run(directory, "npm", ["install", "--no-audit", "--no-fund", `node@${version}`])
    if (installed.code !== 0) throw new Error(installed.stderr)
    // Another test run can install the version at the same time.
    if (existsSync(target)) rmSync(directory, { recursive: true })
    else renameSync(directory, target)
  }
  const { stdout } = await run(target, node, ["--version"])
  if (stdout !== `v${version}\n`) throw new Error(`${node} is not Node ${version}`)
  return node
}
