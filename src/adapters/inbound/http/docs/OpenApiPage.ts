import { LRUCache } from "lru-cache"
import { makeStaticPage, type StaticPage } from "../response/StaticPage.ts"
import { openApi } from "./OpenApi.ts"

/** Makes the page `/openapi.json` of a service that callers reach at a URL. */
const makeOpenApiPage = (serverUrl: string, isPermanent: boolean): Promise<StaticPage> =>
  makeStaticPage(JSON.stringify({ ...openApi, servers: [{ url: serverUrl }] }), {
    contentType: "application/json",
    isPermanent
  })

const byServerUrl = new Map<string, Promise<StaticPage>>()

/** The pages of the origins that were requested last. Clients choose the origins, so their number is bounded. */
const byOrigin = new LRUCache<string, Promise<StaticPage>>({ max: 16 })

/** Returns the page for the server URL of this service's configuration, which lives as long as the process. */
export const loadOpenApiPage = (serverUrl: string): Promise<StaticPage> => {
  const page = byServerUrl.get(serverUrl) ?? makeOpenApiPage(serverUrl, true)
  byServerUrl.set(serverUrl, page)
  return page
}

/** The number of pages that are made at the same time: making one takes milliseconds of a processor. */
const maxConcurrentPages = 2
let pagesInProgress = 0

/** Returns the page for the origin of a request, or the page for `fallbackUrl` while too many pages are being made. */
export const loadOpenApiPageForOrigin = (origin: string, fallbackUrl: string): Promise<StaticPage> => {
  const existing = byOrigin.get(origin)
  if (existing !== undefined) return existing
  if (pagesInProgress >= maxConcurrentPages) return loadOpenApiPage(fallbackUrl)
  pagesInProgress++
  const page = makeOpenApiPage(origin, false).finally(() => pagesInProgress--)
  byOrigin.set(origin, page)
  return page
}
