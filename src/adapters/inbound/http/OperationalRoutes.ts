import * as Effect from "effect/Effect"
import { Outage } from "../../../application/cache/Outage.ts"
import { Lifecycle } from "../../../application/Lifecycle.ts"
import { withRequestDeadline } from "../../../application/Prompts.ts"
import { Readiness } from "../../../application/ports/Readiness.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { OperationalPath } from "../contract/Api.ts"
import type { ApiError } from "../contract/Errors.ts"
import { Address, toPublicPath } from "./Address.ts"
import {
  type HttpRequest,
  type HttpResponse,
  makeEntityHeaders,
  type Representation,
  representDocument,
  respondConditionally,
  toRawHeaders
} from "./HttpMessage.ts"

type Handler = (request: HttpRequest) => Effect.Effect<HttpResponse, ApiError>

const okBody = JSON.stringify({ status: "ok" })
const okResponse: HttpResponse = {
  status: 200,
  headers: toRawHeaders({ ...makeEntityHeaders(okBody, "application/json"), "cache-control": "no-store" }),
  body: okBody
}

const makeRedirect = (path: string): HttpResponse => ({
  status: 308,
  headers: toRawHeaders({ location: path, "cache-control": "no-cache", "content-length": "0" }),
  body: ""
})

/**
 * Makes the handler of a document. The first request renders the document. If the rendering fails, the next request
 * tries again.
 */
const serveDocument = <Module>(
  load: () => Promise<Module>,
  render: (module: Module) => Representation
): Handler => {
  let document: Representation | undefined
  return (request) =>
    Effect.map(Effect.promise(load), (module) => {
      document ??= render(module)
      return respondConditionally(request, document)
    })
}

/**
 * Makes the handlers of the operational paths. `/healthz` reports that the process runs, and `/readyz` reports whether
 * the process can serve requests. `/openapi.json` and `/docs` describe the API. `/` and `/docs/` redirect to `/docs`.
 */
export const makeOperationalRoutes = Effect.gen(function* () {
  const { check } = yield* Readiness
  const outage = yield* Outage
  // An instance that serves known responses during an outage of the database is ready. If `/readyz` returned 503, a
  // load balancer would remove all instances at the same time, and the API would be down too.
  const checkReadiness = outage.readOrServeKnown(withRequestDeadline(check), Effect.void)
  const lifecycle = yield* Lifecycle
  const { publicUrl, basePath = "" } = yield* Address
  // A proxy can remove a prefix from the paths of requests. Only the public URL contains this prefix.
  const publicPath = publicUrl === undefined ? basePath : toPublicPath(publicUrl)
  const serverUrl = publicUrl ?? (publicPath === "" ? "/" : publicPath)
  const redirectToDocs = Effect.succeed(makeRedirect(`${publicPath}/docs`))
  const handlers: Readonly<Record<OperationalPath, Handler>> = {
    "/": () => redirectToDocs,
    "/healthz": () => Effect.succeed(okResponse),
    "/readyz": () =>
      Effect.as(lifecycle.phase() === "serving" ? checkReadiness : Effect.fail(Unavailable), okResponse),
    "/openapi.json": serveDocument(
      () => import("./docs/OpenApi.ts"),
      ({ makeOpenApi }) => representDocument(JSON.stringify(makeOpenApi(serverUrl)), "application/json")
    ),
    "/docs": serveDocument(
      () => import("./docs/DocsPage.ts"),
      ({ makeDocsPage }) => makeDocsPage()
    ),
    "/docs/": () => redirectToDocs
  }
  return handlers
})
