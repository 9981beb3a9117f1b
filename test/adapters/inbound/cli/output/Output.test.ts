import { expect, it } from "vitest"
import { formatTable } from "../../../../../src/adapters/inbound/cli/output/Output.ts"

it("formatTable aligns the columns of 300,000 rows", () => {
  const rows = Array.from({ length: 300_000 }, () => ["a", "b"])
  const lines = formatTable(["WIDE", "B"], rows).split("\n")
  expect(lines).toHaveLength(300_001)
  expect([...new Set(lines)]).toEqual(["WIDE  B", "a     b"])
})
