#!/usr/bin/env node
import * as module from "node:module"

const needed = 24
const { node } = process.versions
if (Number.parseInt(node, 10) < needed) {
  console.error(`prompt-retrieval needs Node ${needed} or later; this is Node ${node}`)
  process.exit(1)
}

// Before anything large is loaded, as it saves compiling that at every start.
module.enableCompileCache()
await import("./runtime/CommandLine.ts")
