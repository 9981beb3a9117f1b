import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, request } from "node:http"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { sample } from "../archives.ts"
import { connectTo, postgres } from "../database.ts"
import { freePort, listenOnFreePort } from "../ports.ts"
import { adaptConfig, programPath, runProgram } from "./programs.ts"
import { type Service, startService, unlimited } from "../service.ts"
import { temporaryDirectory } from "../temporaryDirectory.ts"

const readDeployFile = (file: string) =>
  readFileSync(join(import.meta.dirname, "../../../deploy", file), "utf8")

/** Starts a service with two workspaces and connects to its database. */
export const startOrigin = Effect.gen(function* () {
  const env = {
    ...(yield* postgres.acquire),
    ...unlimited
  }
  const service = yield* Effect.acquireRelease(
    Effect.promise(() => startService(env)),
    (service) => Effect.promise(() => service.stop())
  )
  const database = yield* connectTo(env)
  const [mine, theirs] = [sample(), sample()]
  yield* Effect.promise(() => database.importArchive(mine.archive))
  yield* Effect.promise(() => database.importArchive(theirs.archive))
  return { service, database, mine, theirs }
})

/** Starts a web application whose response to every path is "web". */
const startWebApplication = Effect.suspend(() =>
  listenOnFreePort(createServer((_request, response) => response.setHeader("content-length", 3).end("web")))
)

/**
 * Starts a proxy that replaces the 30 s and the 300 s in the service's Cache-Control with the given seconds. The proxy
 * waits `delay` milliseconds before it forwards a request.
 */
export const shortenCacheTimes = (
  service: Service,
  { fresh, stale }: { readonly fresh: number; readonly stale: number }
): Effect.Effect<{ readonly port: number; delay: number }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const proxy = { port: 0, delay: 0 }
    const server = createServer(async ({ url, method, headers }, response) => {
      await setTimeout(proxy.delay)
      request({ port: service.port, path: url, method, headers }, (original) => {
        const cacheControl = original.headers["cache-control"]!.replace(
          "s-maxage=30, stale-while-revalidate=300",
          `s-maxage=${fresh}, stale-while-revalidate=${stale}`
        )
        response.writeHead(original.statusCode!, { ...original.headers, "cache-control": cacheControl })
        original.pipe(response)
      }).end()
    })
    return Object.assign(proxy, { port: yield* listenOnFreePort(server) })
  })

export interface Cache {
  readonly port: number
  /** Empties the cache as an operator would. */
  readonly purge: () => Promise<void>
}

type Upstream = Pick<Service, "port">
type Replacements = Readonly<Record<string, string>>

/** Starts nginx in front of a service and a web application. Applies replacements to `deploy/nginx.conf`. */
export const startNginxCache = (
  service: Upstream,
  replacements: Replacements = {}
): Effect.Effect<Cache, never, Scope.Scope> =>
  Effect.gen(function* () {
    const home = yield* temporaryDirectory("edge-")
    const port = yield* Effect.promise(freePort)
    const cache = join(home, "cache")
    mkdirSync(cache)
    writeFileSync(
      join(home, "site.conf"),
      adaptConfig(readDeployFile("nginx.conf"), {
        "/var/cache/nginx-prompt-retrieval": cache,
        "127.0.0.1:3000": `127.0.0.1:${service.port}`,
        "127.0.0.1:4000": `127.0.0.1:${yield* startWebApplication}`,
        "listen 443 ssl http2;": `listen 127.0.0.1:${port};`,
        "ssl_certificate /etc/ssl/certs/ssl-cert-snakeoil.pem;": "",
        "ssl_certificate_key /etc/ssl/private/ssl-cert-snakeoil.key;": "",
        ...replacements
      })
    )
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${join(home, name)};`
    )
    writeFileSync(
      join(home, "nginx.conf"),
      `${process.getuid!() === 0 ? "user root;" : ""} daemon off; pid ${home}/pid; error_log ${home}/error.log;
      events {} http { access_log off; ${temporary.join(" ")} include ${home}/site.conf; }`
    )
    yield* runProgram(
      "nginx",
      ["-p", home, "-e", join(home, "error.log"), "-c", join(home, "nginx.conf")],
      port
    )
    return {
      port,
      purge: async () => {
        for (const name of readdirSync(cache)) rmSync(join(cache, name), { recursive: true })
      }
    }
  })

/** Starts Varnish in front of a service. Applies replacements to `deploy/varnish.vcl`. */
export const startVarnishCache = (
  service: Upstream,
  replacements: Replacements = {}
): Effect.Effect<Cache, never, Scope.Scope> =>
  Effect.gen(function* () {
    const home = yield* temporaryDirectory("edge-")
    const port = yield* Effect.promise(freePort)
    const vcl = join(home, "site.vcl")
    const work = join(home, "work")
    writeFileSync(
      vcl,
      adaptConfig(readDeployFile("varnish.vcl"), {
        '.port = "3000"': `.port = "${service.port}"`,
        ...replacements
      })
    )
    const args = ["-F", "-j", "none", "-n", work, "-f", vcl, "-s", "malloc,32m"]
    yield* runProgram("varnishd", [...args, "-a", `127.0.0.1:${port}`], port)
    return {
      port,
      purge: async () => {
        const { status, stderr } = spawnSync("varnishadm", ["-n", work, "ban obj.status == 200"], {
          env: { PATH: programPath }
        })
        if (status !== 0) throw new Error(`varnishadm: ${stderr}`)
      }
    }
  })

/** Starts nginx like `startNginxCache` and returns its port. */
export const startNginx = (service: Service, replacements: Replacements = {}) =>
  Effect.map(startNginxCache(service, replacements), ({ port }) => port)

/** Starts Varnish like `startVarnishCache` and returns its port. */
export const startVarnish = (service: Service) => Effect.map(startVarnishCache(service), ({ port }) => port)
