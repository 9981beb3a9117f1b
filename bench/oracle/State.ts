import * as Effect from "effect/Effect"
import type { PromptApiError } from "../../src/index.ts"
import type { World } from "./Changes.ts"
import type { Stage } from "./Stage.ts"

/**
 * The content of a resource, in parts that the service may read with separate statements. The list of prompts has two
 * parts: its items and their total. Every other resource has one part.
 */
export type Parts = ReadonlyArray<string>

/** The parts of a resource that does not exist. */
export const notFound: Parts = ["404"]

/** The state of a world: how the service treats each key, and what the resources of each workspace contain. */
export interface State {
  /** The workspace that each key may read, or the status and the message with which the key is rejected. */
  readonly admissions: ReadonlyArray<{ readonly workspace?: string; readonly rejection?: string }>
  /** The parts of each resource, by workspace and request target. */
  readonly contents: ReadonlyMap<string, ReadonlyMap<string, Parts>>
}

/** The target of the list, with every prompt on one page. */
const listTarget = "/api/v1/prompts?per_page=100"

/** Returns the parts of the body of a 200 response. */
export const toParts = (target: string, { data, ...others }: { readonly data: unknown }): Parts =>
  target === listTarget
    ? [JSON.stringify(data), JSON.stringify(others)]
    : [JSON.stringify({ data, ...others })]

/** Returns the status and the message of the body of an error response. */
export const toRejection = (status: number, body: string): string =>
  `${status} ${JSON.parse(body).error.message}`

/** Returns the state of a world, as an API without caches returns it. The world must not change during the call. */
export const readState = async (
  { sql, reference: { handler, prompts } }: Stage,
  { keys, workspaces, prompts: ids }: World
): Promise<State> => {
  const rows = await Effect.runPromise(
    sql<{ readonly id: string; readonly workspace_id: string }>`select id, workspace_id from api_keys`
  )
  const admissions = keys.map(async ({ id, plaintext }) => {
    const headers = { authorization: `Bearer ${plaintext}` }
    const response = await handler(new Request(`http://reference.example${listTarget}`, { headers }))
    return response.ok
      ? { workspace: rows.find((row) => row.id === id)!.workspace_id }
      : { rejection: toRejection(response.status, await response.text()) }
  })
  const contents = workspaces.map(async (workspaceId) => {
    const caller = { workspaceId, tier: "team" }
    const page = { per_page: 100 }
    const resources = new Map<string, Parts>()
    const store = async (target: string, body: Promise<{ readonly data: unknown }>) => {
      try {
        resources.set(target, toParts(target, await body))
      } catch (error) {
        if ((error as PromptApiError).code !== "NOT_FOUND") throw error
        resources.set(target, notFound)
      }
    }
    await store(listTarget, prompts.list(caller, page))
    for (const id of ids) {
      const target = `/api/v1/prompts/${id}`
      await store(target, prompts.get(caller, id))
      await store(`${target}/resolved`, prompts.getResolved(caller, id))
      await store(`${target}/versions?per_page=100`, prompts.versions.list(caller, id, page))
    }
    return [workspaceId, resources] as const
  })
  return { admissions: await Promise.all(admissions), contents: new Map(await Promise.all(contents)) }
}
