#!/usr/bin/env node
import * as module from "node:module"

const requiredMajor = 24
const { node } = process.versions
if (Number.parseInt(node, 10) < requiredMajor) {
  console.error(`prompt-retrieval needs Node ${requiredMajor} or later; this is Node ${node}`)
  process.exit(1)
}

// Enables the compile cache before the first import whose compilation it saves.
module.enableCompileCache()
const { main } = await import("./runtime/CommandLine.ts")
main(process.argv.slice(2))
