import { fragment, fragmentBinding, prompt, sample, version } from "../archives.ts"
import { startLoad } from "../clients/load.ts"
import { type Reply, read } from "../clients/read.ts"
import { uncachedPath } from "../clients/requests.ts"
import type { Service } from "./startService.ts"

// Clients that read from several services before and during an outage of the database. A known read is a read to which a
// service responded before the outage. An unknown read is a read that no client has sent before.

/** The value of `Cache-Status` in responses that are served without the database. */
export const outageStatus = "prompt-retrieval; hit; detail=database-unavailable"

/** Returns true if a response was served without the database. */
export const isFromBefore = ({ headers }: Reply): boolean => headers["cache-status"] === outageStatus

/** Returns a workspace with some prompts, each of which has every kind of resource. */
export const makeOutageTenant = () => {
  const tenant = sample()
  const shared = fragment("Be brief.")
  const prompts = Array.from({ length: 20 }, (_, i) =>
    prompt({
      title: `Prompt ${i}`,
      fragments: [fragmentBinding(shared, 1)],
      versions: [version(1, {}), version(2, {})]
    })
  )
  const archive = { ...tenant.archive, fragments: [shared], prompts, folders: [], tags: [] }
  const targets = [
    "/api/v1/prompts",
    "/api/v1/prompts?per_page=5",
    ...prompts.flatMap(({ id }) =>
      ["", "/resolved", "/versions", "/versions/1"].map((end) => `/api/v1/prompts/${id}${end}`)
    )
  ]
  return { ...tenant, archive, targets }
}
type OutageTenant = ReturnType<typeof makeOutageTenant>

/** Reads every target on every service, so that every service has a known response for every target. */
export const warm = async (
  services: ReadonlyArray<Service>,
  { targets, keys }: OutageTenant
): Promise<void> => {
  for (const { url } of services) {
    for (const target of targets) {
      const { status } = await read(url + target, keys.active.plaintext)
      if (status !== 200) throw new Error(`${target}: ${status}`)
    }
  }
}

/**
 * Starts clients that read the known targets in turn, and one client per service that sends only unknown reads. Pauses
 * between requests keep the load the same before and during an outage.
 */
export const startOutageLoad = (
  services: ReadonlyArray<Service>,
  { targets, keys }: OutageTenant,
  clientsPerService = 8
) => {
  const urls = targets.flatMap((target) => services.map(({ url }) => url + target))
  const start = (clients: number, pauseMs: number, toUrl: (url: string) => string) =>
    startLoad({
      next: (n) => ({ url: toUrl(urls[n % urls.length]!), key: keys.active.plaintext }),
      clients: clients * services.length,
      pauseMs
    })
  return { known: start(clientsPerService, 1, (url) => url), unknown: start(1, 20, uncachedPath) }
}
