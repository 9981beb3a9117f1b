import { expect, it } from "vitest"
import { fragment, fragmentBinding, makeTenant, prompt, tag, version } from "../support/archives.ts"
import { send } from "../support/clients/requests.ts"
import { startApi } from "./startApi.ts"

const connections = 50
const rounds = 42

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

const paths = ["", "/resolved", "/versions", "/versions/1", "?tag=shared&page=2&per_page=7"]

it(`${connections} concurrent clients with keys of two workspaces never get content of the other workspace`, async () => {
  const runConnection = async (index: number) => {
    const mine = tenants[index % 2]!
    const theirs = tenants[(index + 1) % 2]!
    for (let round = 0; round < rounds; round++) {
      const isForeign = round % 5 === 4
      const { id } = (isForeign ? theirs : mine).archive.prompts[(index + round) % 30]!
      const end = paths[round % paths.length]!
      const isList = end.startsWith("?")
      const path = isList ? end : `/${id}${end}`
      const authorization = `Bearer ${mine.key.plaintext}`
      const { status, body } = await send(api.service(), `/api/v1/prompts${path}`, authorization)
      expect(body).not.toContain(theirs.canary)
      expect([path, status]).toEqual([path, isForeign && !isList ? 404 : 200])
      if (isList) expect(JSON.parse(body).meta.total).toBe(30)
      else if (!isForeign && !end.endsWith("/versions")) expect(body).toContain(mine.canary)
    }
  }
  await Promise.all(Array.from({ length: connections }, (_, index) => runConnection(index)))
})
