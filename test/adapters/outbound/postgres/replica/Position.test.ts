import { expect, it } from "vitest"
import {
  formatPosition,
  parsePosition
} from "../../../../../src/adapters/outbound/postgres/replica/Position.ts"

it.each([
  ["0/0", 0n],
  ["0/3000af8", 0x3000af8n],
  ["16/b374d848", 0x16_b374d848n],
  ["ffffffff/ffffffff", 0xffff_ffff_ffff_ffffn]
])("the position %s has the value %s in bytes", (text, position) => {
  expect(parsePosition(text.toUpperCase())).toBe(position)
  expect(formatPosition(position)).toBe(text)
})
