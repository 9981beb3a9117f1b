import { type ServerResponse } from "node:http"
import { afterAll, describe, expect, it } from "vitest"
import { makeDirectory, removeDirectories } from "../../../test/support/programs/packages.ts"
import {
  agent,
  others,
  pull,
  readBoth,
  readBundle,
  startProxy,
  startPullService,
  template
} from "./pullService.ts"

startPullService()

afterAll(removeDirectories)

describe("the requests of pull", () => {
  it("after a 429, pull sends no request for the time in Retry-After, and then continues", async () => {
    let limitedAt = 0
    const early: Array<string> = []
    const proxy = await startProxy((request, response) => {
      if (limitedAt !== 0 && Date.now() - limitedAt < 1_000) early.push(request.url!)
      if (proxy.requests.length !== 60) return false
      limitedAt = Date.now()
      response.writeHead(429, { "content-type": "application/json", "retry-after": "1" })
      response.end(JSON.stringify({ error: { code: "RATE_LIMITED", message: "Rate limit exceeded" } }))
      return true
    })
    const out = makeDirectory("pull")
    expect(await pull(["--out", out], proxy.env)).toMatchObject({
      code: 0,
      stdout: "232 prompts: 232 added\n"
    })
    expect(Date.now() - limitedAt).toBeGreaterThanOrEqual(1_000)
    // Up to three other requests were in flight when the 429 was sent.
    expect(early.length).toBeLessThan(4)
    const undelayed = makeDirectory("pull")
    await pull(["--out", undelayed])
    expect(readBoth(out)).toEqual(readBoth(undelayed))
  })

  it("pull takes the version from Prompt-Version, and removes the W/ that a compressing proxy adds to the ETag", async () => {
    const proxy = await startProxy(
      () => false,
      (headers) => {
        headers.set("prompt-version", "17")
        headers.set("etag", `W/${headers.get("etag")}`)
      }
    )
    const out = makeDirectory("pull")
    await pull(["--out", out, "--tag", "production"], proxy.env)
    const [bundled] = readBundle(out).prompts
    expect(bundled).toMatchObject({ version: 17, etag: expect.stringMatching(/^"[^"]+"$/) })
    // A name must be unique among all prompts, so pull reads the list of all prompts until two readings agree.
    const pages = ["per_page=100", "page=2&per_page=100", "page=3&per_page=100"]
    expect(proxy.requests).toEqual([
      ...["per_page=100&tag=production", ...pages, ...pages].map((query) => `/api/v1/prompts?${query}`),
      `/api/v1/prompts/${agent.id}/resolved`
    ])
  })

  it("without Prompt-Version, pull reads a prompt again until the prompt is the same before and after its content is read", async () => {
    let edits = 0
    const respond = (response: ServerResponse, data: object, meta?: object) => {
      response.writeHead(200, { "content-type": "application/json", etag: `"${edits}"` })
      response.end(JSON.stringify({ data, ...(meta && { meta }) }))
      return true
    }
    const summary = () => ({ ...template, current_version: edits, updated_at: String(edits) })
    const proxy = await startProxy(({ url }, response) => {
      if (url!.includes("?")) return respond(response, [summary()], { page: 1, per_page: 100, total: 1 })
      if (!url!.endsWith("/resolved")) return respond(response, { ...summary(), current_content: "" })
      const { id, title, prompt_type, target_model } = template
      respond(response, {
        id,
        title,
        prompt_type,
        target_model,
        resolved_content: `v${edits}`,
        fragment_count: 0
      })
      // The prompt is edited after each of the first two readings of its content.
      if (edits < 2) edits++
      return true
    })
    const out = makeDirectory("pull")
    expect(await pull(["--out", out], proxy.env)).toMatchObject({ code: 0 })
    expect(readBundle(out).prompts).toMatchObject([{ version: 2, content: "v2", etag: '"2"' }])
  })

  it("pull reads a list of several pages again if a prompt was deleted during the reading", async () => {
    let isDeleted = false
    const pages = [others.slice(0, 100), others.slice(100, 200), others.slice(200)]
    const proxy = await startProxy(({ url }, response) => {
      if (!url!.includes("?")) return false
      const page = Number(new URL(url!, "http://host").searchParams.get("page") ?? 1)
      const list = isDeleted ? others.slice(1) : others
      const data = isDeleted ? list.slice((page - 1) * 100, page * 100) : pages[page - 1]
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify({ data, meta: { page, per_page: 100, total: list.length } }))
      // The prompts after the deleted prompt move up by one place, so the next page lacks one of them.
      isDeleted = true
      return true
    })
    const out = makeDirectory("pull")
    expect(await pull(["--out", out], proxy.env)).toMatchObject({ code: 0 })
    const ids = readBundle(out).prompts.map(({ id }) => id)
    expect(ids).toEqual(
      others
        .slice(1)
        .map(({ id }) => id)
        .toSorted()
    )
  })
})
