import { isDeepStrictEqual } from "node:util"
import { assert, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { BundleError, PromptClientError, verifyBundle } from "../../src/index.ts"
import { parseBundleFile, renderBundle } from "../../src/pull/BundleFile.ts"
import { anyText, makeBundle } from "./bundles.ts"

const texts = Arbitrary.array(Arbitrary.all([anyText, anyText]), { maxLength: 5 })

const makeTextBundle = (...pairs: ReadonlyArray<readonly [title: string, content: string]>) =>
  makeBundle(...pairs.map(([title, content]) => ({ title, content })))

/** Returns the `BundleError` that a promise rejects with. */
const fails = async (promise: Promise<unknown>): Promise<BundleError> => {
  const error = await promise.catch((error) => error)
  assert.instanceOf(error, BundleError)
  assert.instanceOf(error, PromptClientError)
  return error
}

it.effect.prop(
  "parseBundleFile returns the prompts that renderBundle wrote, and rejects a bundle with any changed byte or value",
  { texts, position: Schema.Natural, change: Schema.Natural },
  ({ texts, position, change }) =>
    Effect.promise(async () => {
      const bundle = makeTextBundle(["First", "One {{a}}\n😀"], ...texts)
      const text = renderBundle(bundle.prompts)
      assert.deepStrictEqual(await parseBundleFile(text), bundle.prompts)
      const bytes = Buffer.from(text)
      bytes[position % bytes.length]! ^= 1 + (change % 255)
      await fails(parseBundleFile(bytes.toString()))
      let changed: unknown
      try {
        changed = JSON.parse(bytes.toString())
      } catch {
        return
      }
      if (!isDeepStrictEqual(changed, bundle)) await fails(verifyBundle(changed))
    }),
  { arbitrary: { runs: 1_000 } }
)

const bundle = makeTextBundle(["First", "One"], ["Second", "Two"])
const [first, second] = [bundle.prompts[0]!, bundle.prompts[1]!]

it.each([{ content: "Three" }, { version: "3" }, { fragment_count: undefined }, { slots: null }])(
  "the error for a changed bundle names the prompt whose field was changed: %j",
  async (change) => {
    const error = await fails(verifyBundle({ ...bundle, prompts: [first, { ...second, ...change }] }))
    assert.strictEqual(error.promptId, second.id)
    assert.include(error.message, second.id)
  }
)

it("verifyBundle rejects a bundle with a wrong hash or with removed, repeated or reordered prompts, and rejects any value that is not a bundle", async () => {
  const lists = [[first], [], [second, first], [first, second, second], [first, null], {}]
  const changes = [{ sha256: first.sha256 }, { format: "bundle" }, { formatVersion: 99 }]
  const values = [...lists.map((prompts) => ({ prompts })), ...changes].map((change) => ({
    ...bundle,
    ...change
  }))
  for (const value of [...values, {}, [], null, undefined, "text"])
    assert.notProperty(await fails(verifyBundle(value)), "promptId")
})

it("parseBundleFile rejects a file that a formatter has changed, and advises excluding the file from formatters", async () => {
  assert.include((await fails(parseBundleFile(JSON.stringify(bundle)))).message, "exclude it from formatters")
})
