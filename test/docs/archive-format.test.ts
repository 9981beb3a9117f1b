import { readFileSync } from "node:fs"
import { join } from "node:path"
import { it as effectIt } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { describe, expect, it } from "vitest"
import { Archive } from "../../src/application/transfer/Archive.ts"
import { decodeArchive } from "../../src/application/transfer/ArchiveDecoder.ts"
import { archives, exportArchive, loadArchive, toArchiveText } from "../support/archives.ts"
import { workspaceStore } from "../support/database/workspaceStore.ts"
import { migratedDatabase } from "../support/postgres.ts"
import { readCodeBlocks, root } from "./markdown.ts"

const document = "docs/archive-format.md"

/** The JSON Schema of archives, generated from the schemas with which the program reads archives. */
const archiveSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  ...Schema.toJsonSchemaDocument(Archive, { onExcessProperty: "error" }).schema
}

const readJson = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"))

const examples = readCodeBlocks(document).filter(({ language }) => language === "json")
const readExample = () => JSON.parse(examples[0]!.code)

const validate = new Ajv2020({ allErrors: true }).compile(archiveSchema)

/** Returns the path and the message of each violation of the JSON Schema in an archive. */
const findViolations = (archive: unknown): ReadonlyArray<string> =>
  validate(archive) ? [] : validate.errors!.map(({ instancePath, message }) => `${instancePath} ${message}`)

// To update the file after a change of the schemas: npx vitest run test/docs/archive-format.test.ts -u
it("docs/archive.schema.json is the JSON Schema generated from the schemas that read archives", async () => {
  await expect(`${JSON.stringify(archiveSchema, null, 2)}\n`).toMatchFileSnapshot(
    join(root, "docs/archive.schema.json")
  )
})

it("src/demo/workspace.json is valid under docs/archive.schema.json", () => {
  expect(findViolations(readJson("src/demo/workspace.json"))).toEqual([])
})

effectIt.prop(
  "every archive that import accepts is valid under docs/archive.schema.json",
  { archive: archives },
  ({ archive }) => {
    expect(findViolations(JSON.parse(toArchiveText(archive)))).toEqual([])
  }
)

describe("docs/archive-format.md", () => {
  it("docs/archive-format.md has one example, which is valid under the JSON Schema", () => {
    expect(examples).toHaveLength(1)
    expect(findViolations(readExample())).toEqual([])
  })

  it("the example in docs/archive-format.md is accepted by an import and returned unchanged by an export", async () => {
    const imported = Effect.gen(function* () {
      yield* loadArchive(Result.getOrThrow(decodeArchive(readExample())))
      return yield* exportArchive(readExample().workspace.id)
    })
    const store = Layer.provide(workspaceStore, migratedDatabase)
    expect(await Effect.runPromise(Effect.provide(imported, store))).toEqual(readExample())
  })
})
