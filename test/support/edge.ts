import { once } from "node:events"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { sample } from "./archives.ts"
import { connectTo, postgres } from "./database.ts"
import { freePort } from "./ports.ts"
import { adapted, noProgram, runProgram } from "./programs.ts"
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

/** A web application that answers every path with "web". */
const webApplication = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = createServer((_request, response) =>
      response.setHeader("content-length", 3).end("web")
    ).listen(0, "127.0.0.1")
    await once(server, "listening")
    return server
  }),
  (server) => Effect.promise(async () => void server.close().closeAllConnections())
).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

/** The address of nginx with `deploy/nginx.conf`, which `change` may spoil, before a service and a web application. */
export const nginxBefore = (
  service: Service,
  change: Readonly<Record<string, string>> = {}
): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const home = yield* directory
    const port = yield* Effect.promise(freePort)
    mkdirSync(join(home, "cache"))
    writeFileSync(
      join(home, "site.conf"),
      adapted(deploy("nginx.conf"), {
        "/var/cache/nginx/prompt-retrieval": join(home, "cache"),
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
    return port
  })

/** The address of Varnish with `deploy/varnish.vcl` before a service. */
export const varnishBefore = (service: Service): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const home = yield* directory
    const port = yield* Effect.promise(freePort)
    const vcl = join(home, "site.vcl")
    writeFileSync(vcl, adapted(deploy("varnish.vcl"), { '.port = "3000"': `.port = "${service.port}"` }))
    const args = ["-F", "-j", "none", "-n", join(home, "work"), "-f", vcl, "-s", "malloc,32m"]
    yield* runProgram("varnishd", [...args, "-a", `127.0.0.1:${port}`], port)
    return port
  })
