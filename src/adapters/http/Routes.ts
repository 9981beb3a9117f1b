import * as Effect from "effect/Effect"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import { Admission } from "../../application/Admission.ts"
import { Api } from "./Api.ts"
import { makeApp, routerConfig } from "./App.ts"
import { authorization, queryRules } from "./Authorization.ts"
import { handlers } from "./Handlers.ts"
import type { ReadyResponses } from "./ReadyResponses.ts"
import { system } from "./System.ts"
import { isTraced } from "./Tracing.ts"

const routes = Layer.mergeAll(
  HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers), Layer.provide([authorization, queryRules])),
  system
).pipe(Layer.provide(HttpServer.layerServices))

/**
 * The whole service over HTTP, from a request to its answer, for whatever carries requests. What answers 200 goes to
 * `ready`, where there is one.
 */
export const makeHttpApp = (ready?: ReadyResponses) =>
  Effect.gen(function* () {
    const router = yield* HttpRouter.toHttpEffect(routes)
    return makeApp(router, yield* Admission, yield* isTraced, ready)
  }).pipe(Effect.provideService(HttpRouter.RouterConfig, routerConfig))

/** For whatever carries requests: Effect's own spans of them are left out, as they hold the URL with its query. */
export const withoutUrlSpans = Effect.provideService(HttpMiddleware.TracerDisabledWhen, () => true)
