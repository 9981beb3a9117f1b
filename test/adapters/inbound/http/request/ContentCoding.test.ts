import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { chooseContentCoding } from "../../../../../src/adapters/inbound/http/request/ContentCoding.ts"

const codings = ["br", "gzip", "identity", "*", "deflate", "zstd"] as const
/** The weight of a content coding, in thousandths. */
const Weight = Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1000 })))
const Weights = Schema.Struct({
  br: Weight,
  gzip: Weight,
  identity: Weight,
  "*": Weight,
  deflate: Weight,
  zstd: Weight
})
type Weights = typeof Weights.Type

/** Writes an element of Accept-Encoding in one of the forms that the grammar allows. */
const formatElement = (coding: string, weight: number, style: number): string => {
  const space = ["", " ", "\t", "  "][style % 4]
  const name = style % 3 === 0 ? coding.toUpperCase() : coding
  const number = [String(weight / 1000), (weight / 1000).toFixed(3)][style % 2]
  return weight === 1000 && style % 5 === 0
    ? `${space}${name}${space}`
    : `${space}${name}${space};${space}${style % 7 === 0 ? "Q" : "q"}=${number}${space}`
}

const formatHeader = (weights: Weights, style: number): string => {
  const elements = codings.flatMap((coding, i) => {
    const weight = weights[coding]
    return weight === undefined ? [] : [formatElement(coding, weight, style + i)]
  })
  const start = elements.length === 0 ? 0 : style % elements.length
  return [...elements.slice(start), ...elements.slice(0, start)].join(",")
}

describe("chooseContentCoding", () => {
  it.prop(
    "chooseContentCoding chooses the acceptable coding with the greatest weight; of equal weights, it prefers br, then gzip, then no coding",
    { weights: Weights, style: Schema.Natural },
    ({ weights, style }) => {
      const weigh = (coding: "br" | "gzip" | "identity") => weights[coding] ?? weights["*"] ?? 0
      const [best] = (["br", "gzip", "identity"] as const)
        .filter((coding) => weigh(coding) > 0)
        .toSorted((a, b) => weigh(b) - weigh(a))
      assert.strictEqual(
        chooseContentCoding(formatHeader(weights, style)),
        best === "identity" ? undefined : best
      )
    },
    { arbitrary: { runs: 1000 } }
  )

  it.each([
    [undefined, undefined],
    ["", undefined],
    ["*", "br"],
    ["gzip, deflate, br, zstd", "br"],
    ["x-gzip", "gzip"],
    ["gzip;q=0", undefined],
    ["gzip;q=2", undefined],
    ["gzip;q=0.1234", undefined],
    ["gzip;q", undefined],
    ["gzip;level=9", undefined],
    ["br;q=x, gzip", "gzip"],
    [",, gzip ,", "gzip"],
    ["brotli, gzipped", undefined]
  ])("for the header %j, chooseContentCoding returns %j", (header, coding) => {
    assert.strictEqual(chooseContentCoding(header), coding)
  })
})
