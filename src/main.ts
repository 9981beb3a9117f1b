#!/usr/bin/env node
import * as module from "node:module"
import { programVersion } from "./application/support/ProgramVersion.ts"

const requiredMajor = 24
const { node } = process.versions
if (Number.parseInt(node, 10) < requiredMajor) {
  console.error(`prompt-retrieval needs Node ${requiredMajor} or later; this is Node ${node}`)
  process.exit(1)
}

const args = process.argv.slice(2)
if (args.length === 1 && args[0] === "--version") {
  // Needs none of the modules of the command line.
  console.log(`prompt-retrieval v${programVersion}`)
} else {
  // The compile cache must be enabled before the imports that it caches.
  module.enableCompileCache()
  const { main } = await import("./runtime/CommandLine.ts")
  main(args)
}
