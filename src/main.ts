#!/usr/bin/env node
import { writeSync } from "node:fs"
import * as module from "node:module"
import { join } from "node:path"
import { versionText } from "./application/ProgramVersion.ts"

const requiredMajor = 24
const { node } = process.versions
if (Number.parseInt(node, 10) < requiredMajor) {
  console.error(`prompt-retrieval needs Node ${requiredMajor} or later; this is Node ${node}`)
  process.exit(1)
}

const args = process.argv.slice(2)
if (args.length === 1 && args[0] === "--version") {
  // This module handles `--version`, because the option needs no module of the command line.
  try {
    writeSync(1, `${versionText}\n`)
  } catch (error) {
    console.error(`prompt-retrieval: cannot write to standard output: ${(error as Error).message}`)
    process.exitCode = 1
  }
} else {
  // The compile cache must be enabled before the imports that it caches. By default, Node puts the cache into the
  // shared temporary directory, where another user could place code. NODE_COMPILE_CACHE enables the cache in another
  // directory.
  const { HOME, NODE_COMPILE_CACHE } = process.env
  if (HOME !== undefined && NODE_COMPILE_CACHE === undefined)
    module.enableCompileCache(join(HOME, ".cache/prompt-retrieval"))
  const { main } = await import("./runtime/CommandLine.ts")
  main(args)
}
