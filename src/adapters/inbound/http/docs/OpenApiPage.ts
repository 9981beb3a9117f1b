import { makeStaticPage, type StaticPage } from "../response/StaticPage.ts"
import { openApi } from "./OpenApi.ts"

/** Makes the page `/openapi.json` of a service that callers reach at a URL, which may be relative. */
export const makeOpenApiPage = (serverUrl: string): Promise<StaticPage> =>
  makeStaticPage(JSON.stringify({ ...openApi, servers: [{ url: serverUrl }] }), "application/json")
