// For `node --import`: enables Node's compile cache before `main.ts`, which would otherwise load Node's parser of
// TypeScript for itself alone: 17 MiB of memory and 45 ms. The package has `main.js` and does not need this file.
import { enableCompileCache } from "node:module"

enableCompileCache()
