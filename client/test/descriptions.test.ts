import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { openApi } from "../../src/adapters/inbound/http/docs/OpenApi.ts"

interface JsonSchema {
  readonly $ref?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly allOf?: ReadonlyArray<JsonSchema>
}

const schemas = JSON.parse(JSON.stringify(openApi)).components.schemas as Readonly<Record<string, JsonSchema>>

const findDescription = (schema: JsonSchema): string | undefined =>
  schema.description ?? (schema.$ref && findDescription(schemas[schema.$ref.split("/").at(-1)!]!))

/** Returns the doc comments of the fields of an interface, each on one line. */
const readComments = (name: string): Readonly<Record<string, string>> => {
  const source = readFileSync(join(import.meta.dirname, "../src/Resources.ts"), "utf8")
  const [, body] = new RegExp(`^export interface ${name} \\{\\n(.*?)^\\}`, "ms").exec(source)!
  return Object.fromEntries(
    [...body!.matchAll(/(?:\/\*\*((?:(?!\*\/).)*)\*\/\s+)?readonly (\w+)\??:/gs)].map(
      ([, comment = "", field]) => [field, comment.replace(/\s*\n\s*\*\s*/g, " ").trim()]
    )
  )
}

it.each(["Tag", "PromptSummary", "Prompt", "ResolvedPrompt", "VersionSummary", "Version", "PageMeta"])(
  "each field of the client's %s has the description of the OpenAPI document as its doc comment",
  (name) => {
    const { properties } = schemas[name]!
    const descriptions = Object.entries(properties!).map(([field, schema]) => [
      field,
      findDescription(schema)
    ])
    expect(readComments(name)).toEqual(Object.fromEntries(descriptions))
  }
)
