import { assert, describe, it } from "@effect/vitest"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Administration } from "../../../src/application/administration/Administration.ts"
import { toRawParts } from "../../../src/application/transfer/RawPart.ts"
import { archive, prompt, version } from "../../support/archives.ts"
import { workspaceStore } from "../../support/database/workspaceStore.ts"
import { migratedDatabase } from "../../support/postgres.ts"

const layer = Administration.layer.pipe(
  Layer.provide(SecureRandom.layerWebCrypto),
  Layer.provide(workspaceStore),
  Layer.provide(migratedDatabase)
)

describe("exportArchive", () => {
  it.live(
    "exportArchive writes the archive of a prompt with large versions in chunks of about one version",
    () =>
      Effect.gen(function* () {
        const { importArchive, exportArchive } = yield* Administration
        const long = prompt({
          versions: Array.from({ length: 200 }, (_, index) =>
            version(index + 1, { content: "x".repeat(100_000) })
          )
        })
        const original = archive({ prompts: [long] })
        yield* importArchive(Stream.fromIterable(toRawParts(original)))
        const texts: Array<string> = []
        yield* exportArchive(original.workspace.id, (text) => Effect.sync(() => void texts.push(text)))
        assert.isBelow(Math.max(...texts.map(({ length }) => length)), 200_000)
        assert.deepStrictEqual(JSON.parse(texts.join("")), JSON.parse(JSON.stringify(original)))
      }).pipe(Effect.provide(layer))
  )
})
