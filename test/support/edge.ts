import { spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type RequestListener, request } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { sample } from "./archives.ts"
import { connectTo, postgres } from "./database.ts"
import { freePort } from "./ports.ts"
import { adapted, noProgram, programPath, runProgram } from "./programs.ts"
import { type Service, startService } from "./service.ts"

export const noNginx = postgres.missing ?? noProgram("nginx", "-v")
export const noVarnish = postgres.missing ?? noProgram("varnishd", "-V")

const deploy = (file: string) => readFileSync(join(import.meta.dirname, "../../deploy", file), "utf8")

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "edge-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The service with two workspaces, as it is behind a cache, and its database. */
export const origin = Effect.gen(function* () {
  const env = {
    ...(yield* postgres.acquire),
    RATE_LIMIT_PER_KEY: "1000000",
    RATE_LIMIT_PER_PROCESS: "1000000"
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

/** The port of an HTTP server of the test's own. */
const serverOf = (listener: RequestListener): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer(listener).listen(0, "127.0.0.1")
      await once(server, "listening")
      return server
    }),
    (server) => Effect.promise(async () => void server.close().closeAllConnections())
  ).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

/** A web application that answers every path with "web". */
const webApplication = serverOf((_request, response) => response.setHeader("content-length", 3).end("web"))

/**
 * The service with short times: where it tells a cache 30 s fresh and 300 s stale, this says fewer seconds. `delay` is
 * how long it takes for each answer, in milliseconds.
 */
export const inHaste = (
  service: Service,
  { fresh, stale }: { readonly fresh: number; readonly stale: number }
): Effect.Effect<{ readonly port: number; delay: number }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const hasty = { port: 0, delay: 0 }
    const server = yield* serverOf(async ({ url, method, headers }, response) => {
      await setTimeout(hasty.delay)
      request({ port: service.port, path: url, method, headers }, (answer) => {
        const told = answer.headers["cache-control"]!.replace(
          "s-maxage=30, stale-while-revalidate=300",
          `s-maxage=${fresh}, stale-while-revalidate=${stale}`
        )
        response.writeHead(answer.statusCode!, { ...answer.headers, "cache-control": told })
        answer.pipe(response)
      }).end()
    })
    return Object.assign(hasty, { port: server })
  })

/** A cache that runs: its port, and how an operator empties it. */
export interface Cache {
  readonly port: number
  readonly purge: () => Promise<void>
}

type Before = Pick<Service, "port">
type Change = Readonly<Record<string, string>>

/** nginx with `deploy/nginx.conf`, in which `change` may replace texts, before a service and a web application. */
export const nginxCache = (service: Before, change: Change = {}): Effect.Effect<Cache, never, Scope.Scope> =>
  Effect.gen(function* () {
    const home = yield* directory
    const port = yield* Effect.promise(freePort)
    const cache = join(home, "cache")
    mkdirSync(cache)
    writeFileSync(
      join(home, "site.conf"),
      adapted(deploy("nginx.conf"), {
        "/var/cache/nginx/prompt-retrieval": cache,
        "127.0.0.1:3000": `127.0.0.1:${service.port}`,
        "127.0.0.1:4000": `127.0.0.1:${yield* webApplication}`,
        "listen 80;": `listen 127.0.0.1:${port};`,
        ...change
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

/** Varnish with `deploy/varnish.vcl`, in which `change` may replace texts, before a service. */
export const varnishCache = (
  service: Before,
  change: Change = {}
): Effect.Effect<Cache, never, Scope.Scope> =>
  Effect.gen(function* () {
    const home = yield* directory
    const port = yield* Effect.promise(freePort)
    const vcl = join(home, "site.vcl")
    const work = join(home, "work")
    writeFileSync(
      vcl,
      adapted(deploy("varnish.vcl"), { '.port = "3000"': `.port = "${service.port}"`, ...change })
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

/** The port of nginx as `nginxCache` starts it. */
export const nginxBefore = (service: Service, change: Change = {}) =>
  Effect.map(nginxCache(service, change), ({ port }) => port)

/** The port of Varnish as `varnishCache` starts it. */
export const varnishBefore = (service: Service) => Effect.map(varnishCache(service), ({ port }) => port)
