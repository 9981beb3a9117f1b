import { expect, it } from "vitest"
import { comparePrompts, renderDiff } from "../../src/pull/Comparison.ts"
import { makeBundle } from "../makeBundle.ts"

const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"

const diff = (etag: string, version: number): ReadonlyArray<string> => {
  const toPrompts = (etag: string, version: number) =>
    makeBundle([{ id, content: "Text", title: "Title", version, etag }]).prompts
  const comparison = comparePrompts(toPrompts('"a"', 1), toPrompts(etag, version))
  return renderDiff(comparison).split("\n")
}

it("renderDiff shows a changed ETag only if nothing else has changed", () => {
  const head = [`--- ${id} Title`, `+++ ${id} Title`]
  expect(diff('"b"', 1)).toEqual([...head, '-etag: "a"', '+etag: "b"', ""])
  expect(diff('"b"', 2)).toEqual([...head, "-version: 1", "+version: 2", ""])
  expect(diff('"a"', 1)).toEqual([""])
})
