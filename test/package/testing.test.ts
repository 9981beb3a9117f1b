import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Admission, defaultRateLimits } from "../../src/application/access/Admission.ts"
import { Prompts } from "../../src/application/reading/Prompts.ts"
import { hashApiKey, toKeyEnds, makeApiKey } from "../../src/domain/ApiKey.ts"
import { importArchive, memoryLayer } from "../../src/testing.ts"
import { bin, makeLinkedProject, run } from "../support/programs/packages.ts"

const root = join(import.meta.dirname, "../..")

const apiKey = makeApiKey(new Uint8Array(32))
const demo = JSON.parse(readFileSync(join(root, "src/demo/workspace.json"), "utf8"))
const archive = {
  ...demo,
  api_keys: [
    {
      id: "11111111-1111-4111-8111-111111111111",
      name: "test",
      key_hash: hashApiKey(apiKey),
      ...toKeyEnds(apiKey),
      workspace_id: demo.workspace.id,
      created_by: demo.users[0].id,
      created_at: "2026-01-01T00:00:00.000Z",
      revoked_at: null
    }
  ]
}

const services = Layer.mergeAll(Prompts.layer, Admission.layer(defaultRateLimits)).pipe(
  Layer.provideMerge(memoryLayer)
)

const listTotal = Effect.gen(function* () {
  const admission = yield* Admission
  const prompts = yield* Prompts
  const caller = yield* admission.admit(apiKey)
  return (yield* prompts.list(caller, {}, { page: 1, per_page: 1 })).total
})

describe("prompt-retrieval/testing", () => {
  it("the example in the doc comment of src/testing.ts compiles under strict and prints the number of system prompts in an archive and a resolved prompt", async () => {
    const project = makeLinkedProject("embedder")
    const [, comment] = /^ \* ```ts\n(.*?)^ \* ```$/ms.exec(
      readFileSync(join(root, "src/testing.ts"), "utf8")
    )!
    writeFileSync(join(project, "example.ts"), comment!.replace(/^ \* ?/gm, ""))
    writeFileSync(join(project, "workspace.json"), JSON.stringify(archive))
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          module: "NodeNext",
          target: "ES2024",
          strict: true,
          noEmit: true,
          skipLibCheck: true,
          allowImportingTsExtensions: true,
          resolveJsonModule: true,
          types: ["node"]
        },
        include: ["example.ts"]
      })
    )
    assert.deepStrictEqual(await run(project, bin("tsc"), ["-p", "."]), { code: 0, stdout: "", stderr: "" })
    const { code, stdout, stderr } = await run(project, process.execPath, ["example.ts"], {
      PROMPT_RETRIEVAL_KEY: apiKey
    })
    assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
    const systemPrompts = demo.prompts.filter(
      (prompt: { readonly prompt_type: string; readonly is_archived: boolean }) =>
        prompt.prompt_type === "system" && !prompt.is_archived
    )
    assert.match(stdout, new RegExp(`^\\{\\s+total: ${systemPrompts.length},\\s+resolved_content: `))
  }, 120_000)

  it.effect("importArchive fills only the store of its caller, and each new store is empty", () =>
    Effect.gen(function* () {
      const filled = Effect.andThen(importArchive(archive), listTotal)
      const provided = <A, E>(program: Effect.Effect<A, E, Layer.Success<typeof services>>) =>
        Effect.provide(program, Layer.fresh(services))
      const expected = demo.prompts.filter(
        ({ is_archived }: { readonly is_archived: boolean }) => !is_archived
      ).length
      assert.strictEqual(yield* provided(filled), expected)
      assert.deepStrictEqual(yield* Effect.flip(provided(listTotal)), { _tag: "InvalidKey" })
      assert.strictEqual(yield* provided(filled), expected)
    })
  )

  it.effect("importArchive fails with the problems of an invalid archive and stores nothing", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(importArchive({ ...archive, tags: [{}] }))
      assert.strictEqual(error._tag, "InvalidContent")
      assert.deepStrictEqual(yield* Effect.flip(listTotal), { _tag: "InvalidKey" })
    }).pipe(Effect.provide(services))
  )
})
