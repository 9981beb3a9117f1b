#!/usr/bin/env node
import * as module from "node:module"

const requiredMajor = 24
const { node } = process.versions
if (Number.parseInt(node, 10) < requiredMajor) {
  console.error(`prompt-retrieval needs Node ${requiredMajor} or later; this is Node ${node}`)
  process.exit(1)
}

// The cache must be enabled before the modules that it spares compiling are imported.
module.enableCompileCache()
const { main } = await import("./runtime/CommandLine.ts")
main(process.argv.slice(2))
