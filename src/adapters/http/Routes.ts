import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import { Api } from "./Api.ts"
import { makeApp, routerConfig } from "./App.ts"
import { authorization, queryRules } from "./Authorization.ts"
import { handlers } from "./Handlers.ts"
import { system } from "./System.ts"

const routes = Layer.mergeAll(
  HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers), Layer.provide([authorization, queryRules])),
  system
).pipe(Layer.provide(HttpServer.layerServices))

/** The whole service over HTTP, from a request to its answer, for whatever carries requests. */
export const httpApp = HttpRouter.toHttpEffect(routes).pipe(
  Effect.provideService(HttpRouter.RouterConfig, routerConfig),
  Effect.map(makeApp)
)
