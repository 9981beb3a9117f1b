import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isDeepStrictEqual } from "node:util"
import { findSlots } from "../../../src/domain/Resolution.ts"
import { BundleError, PromptClientError, verifyBundle } from "../../src/index.ts"
import { parseBundleFile, renderBundle } from "../../src/pull/BundleFile.ts"
import { listSlots } from "../../src/pull/PromptReader.ts"
import { anyText, makeBundle } from "./bundles.ts"

const texts = Arbitrary.array(Arbitrary.all([anyText, anyText]), { maxLength: 5 })

const makeTextBundle = (pairs: ReadonlyArray<readonly [title: string, content: string]>) =>
  makeBundle(...pairs.map(([title, content]) => ({ title, content })))

/** Returns the `BundleError` that a promise rejects with. */
const fails = async (promise: Promise<unknown>): Promise<BundleError> => {
  const error = await promise.catch((error) => error)
  assert.instanceOf(error, BundleError)
  return error
}

describe("a bundle", () => {
  it.effect.prop(
    "a bundle of any prompts is unchanged after it is written to a file and read back",
    { texts },
    ({ texts }) =>
      Effect.promise(async () => {
        const bundle = makeTextBundle(texts)
        const text = renderBundle(bundle.prompts)
        const parsed = await parseBundleFile(text)
        assert.deepStrictEqual(parsed, bundle.prompts)
        assert.strictEqual(renderBundle(parsed), text)
        assert.deepStrictEqual(await verifyBundle(JSON.parse(text)), bundle)
      })
  )

  it.effect.prop(
    "a bundle file with any changed byte is rejected, and verifyBundle rejects any bundle with a changed value",
    { texts, position: Schema.Natural, change: Schema.Natural },
    ({ texts, position, change }) =>
      Effect.promise(async () => {
        const bundle = makeTextBundle([["First", "One {{a}}\n😀"], ...texts])
        const bytes = Buffer.from(renderBundle(bundle.prompts))
        bytes[position % bytes.length]! ^= 1 + (change % 255)
        const text = bytes.toString()
        await fails(parseBundleFile(text))
        let changed: unknown
        try {
          changed = JSON.parse(text)
        } catch {
          return
        }
        if (!isDeepStrictEqual(changed, bundle)) await fails(verifyBundle(changed))
      }),
    { arbitrary: { runs: 1_000 } }
  )

  const bundle = makeTextBundle([
    ["First", "One"],
    ["Second", "Two"]
  ])
  const [first, second] = [bundle.prompts[0]!, bundle.prompts[1]!]

  it.each([
    { content: "Three" },
    { title: "" },
    { version: "3" },
    { fragment_count: undefined },
    { slots: null },
    { sha256: first.sha256 },
    { target_model: null }
  ])(
    "the error for a changed bundle names the prompt whose field or hash was changed: %j",
    async (change) => {
      const changed = { ...bundle, prompts: [first, { ...second, ...change }] }
      const error = await fails(verifyBundle(changed))
      assert.strictEqual(error.promptId, second.id)
      assert.include(error.message, second.id)
      assert.instanceOf(error, PromptClientError)
    }
  )

  it("verifyBundle rejects a bundle with a wrong hash or with removed, repeated or reordered prompts, and rejects any value that is not a bundle", async () => {
    const lists = [[first], [], [second, first], [first, second, second], [first, null], {}]
    const values: ReadonlyArray<unknown> = [
      ...lists.map((prompts) => ({ ...bundle, prompts })),
      ...[{ sha256: first.sha256 }, { format: "bundle" }, { formatVersion: 2 }].map((change) => ({
        ...bundle,
        ...change
      })),
      ...[{}, [], null, undefined, "text"]
    ]
    for (const value of values) await fails(verifyBundle(value))
  })

  it("parseBundleFile rejects a file that a formatter has changed, and advises to exclude the file from formatters", async () => {
    const bundle = makeTextBundle([["First", "One {{a}}"]])
    assert.include(
      (await fails(parseBundleFile(JSON.stringify(bundle)))).message,
      "exclude it from formatters"
    )
  })

  it.prop(
    "the slots of a bundled prompt are the slots that the service finds in its content",
    { content: anyText },
    ({ content }) => {
      assert.deepStrictEqual(listSlots(content), [...findSlots(content)])
    }
  )
})
