import { join } from "node:path"
import { it as effectIt } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { expect, it } from "vitest"
import { Archive } from "../../src/application/transfer/Archive.ts"
import { decodeArchive } from "../../src/application/transfer/ArchiveDecoder.ts"
import { archives, exportArchive, loadArchive, toArchiveText } from "../support/archives.ts"
import { migratedDatabase } from "../support/database/server.ts"
import { workspaceStore } from "../support/database/workspaceStore.ts"
import { readCodeBlocks, root } from "./markdown.ts"

/** The JSON Schema of archives, generated from the schemas with which the program reads archives. */
const archiveSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  ...Schema.toJsonSchemaDocument(Archive, { onExcessProperty: "error" }).schema
}

const validate = new Ajv2020({ allErrors: true }).compile(archiveSchema)

/** Returns the path and the message of each value with which an archive violates the JSON Schema. */
const findViolations = (archive: unknown): ReadonlyArray<string> =>
  validate(archive) ? [] : validate.errors!.map(({ instancePath, message }) => `${instancePath} ${message}`)

// To update the file after a change to the schemas: npx vitest run test/docs/archive-format.test.ts -u
it("docs/archive.schema.json is the JSON Schema generated from the schemas that read archives", async () => {
  await expect(`${JSON.stringify(archiveSchema, null, 2)}\n`).toMatchFileSnapshot(
    join(root, "docs/archive.schema.json")
  )
})

effectIt.prop(
  "every archive that import accepts is valid under docs/archive.schema.json",
  { archive: archives },
  ({ archive }) => {
    expect(findViolations(JSON.parse(toArchiveText(archive)))).toEqual([])
  }
)

it("an import accepts the only example in docs/archive-format.md, and an export returns the example unchanged", async () => {
  const [example, ...others] = readCodeBlocks("docs/archive-format.md")
    .filter(({ language }) => language === "json")
    .map(({ code }) => JSON.parse(code))
  expect(others).toEqual([])
  const imported = Effect.gen(function* () {
    yield* loadArchive(Result.getOrThrow(decodeArchive(example)))
    return yield* exportArchive(example.workspace.id)
  })
  const store = Layer.provide(workspaceStore, migratedDatabase)
  expect(await Effect.runPromise(Effect.provide(imported, store))).toEqual(example)
})
