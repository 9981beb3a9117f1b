import { serveWithFault } from "./plantFault.ts"

// Caches take the revision when a read has ended, so they store results that are older than their revision.
await serveWithFault({
  file: "application/Freshness.ts",
  replacements: {
    [`      const revisionAtStart = this.#feed.revision()
      return Effect.map(read, (result) => {
`]: `      return Effect.map(read, (result) => {
        const revisionAtStart = this.#feed.revision()
`
  }
})
