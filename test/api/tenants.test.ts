import { expect, it } from "vitest"
import { fragment, fragmentBinding, makeTenant, prompt, tag, version } from "../support/archives.ts"
import { startApi } from "./startApi.ts"

const connections = 50
const rounds = 40

/** Makes a workspace with a key. All its prompts contain the canary, a text that no other workspace may get. */
const makeCanaryTenant = (canary: string) => {
  const label = tag("shared")
  const part = fragment(`${canary} {{who}}`)
  const tenant = makeTenant({
    workspace: { name: canary },
    tags: [label],
    fragments: [part],
    prompts: Array.from({ length: 30 }, () =>
      prompt({
        title: canary,
        description: canary,
        current_content: canary,
        tags: [label.id],
        fragments: [fragmentBinding(part, 0, { variable_overrides: { who: canary } })],
        versions: [version(1, { content: canary, change_summary: canary })]
      })
    )
  })
  return { ...tenant, canary }
}

const tenants = [makeCanaryTenant("canary-of-the-first"), makeCanaryTenant("canary-of-the-second")] as const
const api = startApi(tenants.map(({ archive }) => archive))

it(`${connections} concurrent clients with keys of two workspaces never get content of the other workspace`, async () => {
  const responsesByStatus = new Map<number, number>()
  const runConnection = async (index: number) => {
    const mine = tenants[index % 2]!
    const theirs = tenants[(index + 1) % 2]!
    for (let round = 0; round < rounds; round++) {
      const own = mine.archive.prompts[(index + round) % 30]!.id
      const foreign = theirs.archive.prompts[(index + round) % 30]!.id
      const id = round % 5 === 4 ? foreign : own
      const path = [
        "",
        `/${id}`,
        `/${id}/resolved`,
        `/${id}/versions`,
        `/${id}/versions/1`,
        "?tag=shared&page=2&per_page=7"
      ][round % 6]!
      const response = await fetch(`${api.service().url}/api/v1/prompts${path}`, {
        headers: { authorization: `Bearer ${mine.key.plaintext}` }
      })
      const text = await response.text()
      expect(text).not.toContain(theirs.canary)
      if (path.includes(foreign)) expect(response.status).toBe(404)
      else {
        expect(response.status).toBe(200)
        if (!path.endsWith("/versions")) expect(JSON.stringify(JSON.parse(text).data)).not.toBe("[]")
        if (path === "" || path.startsWith("?")) expect(JSON.parse(text).meta.total).toBe(30)
      }
      responsesByStatus.set(response.status, (responsesByStatus.get(response.status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: connections }, (_, index) => runConnection(index)))
  expect((responsesByStatus.get(200) ?? 0) + (responsesByStatus.get(404) ?? 0)).toBe(connections * rounds)
  expect(responsesByStatus.get(404)).toBeGreaterThan(connections)
})
