import { serveWithFault } from "./plantFault.ts"

// A change feed that reconnects assumes that nothing has changed meanwhile.
await serveWithFault({
  file: "adapters/outbound/postgres/PostgresChangeFeed.ts",
  replacements: { "          revisions.invalidateAll()\n": "" }
})
