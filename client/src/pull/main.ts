#!/usr/bin/env node
import { runPull } from "./Pull.ts"

process.exitCode = await runPull(process.argv.slice(2))
