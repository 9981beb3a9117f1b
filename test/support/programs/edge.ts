import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { sample } from "../archives.ts"
import { connectTo, postgresEnv } from "../database/connection.ts"
import { freePort, listenOnFreePort } from "../network/ports.ts"
import { runService, type Service, startService, unlimited } from "../services/startService.ts"
import { temporaryDirectory } from "../testDirectory.ts"
import { adaptConfig, programPath, runProgram } from "./startProgram.ts"

/** Starts a service with two workspaces and connects to its database. */
export const startOrigin = Effect.gen(function* () {
  const env = { ...(yield* postgresEnv), ...unlimited }
  const service = yield* runService(() => startService(env))
  const database = yield* connectTo(env)
  const [mine, theirs] = [sample(), sample()]
  yield* Effect.promise(() => database.importArchive(mine.archive))
  yield* Effect.promise(() => database.importArchive(theirs.archive))
  return { service, database, mine, theirs }
})

export type Origin = Effect.Success<typeof startOrigin>

/** Starts a web application whose response to every path is "web". */
const startWebApplication = Effect.suspend(() =>
  listenOnFreePort(createServer((_request, response) => response.setHeader("content-length", 3).end("web")))
)

/** A cache in front of a service. */
export type Cache = Effect.Success<ReturnType<typeof startNginx>>

type Upstream = Pick<Service, "port">
type Replacements = Readonly<Record<string, string>>

/** Starts nginx in front of a service and a web application. Applies replacements to `deploy/nginx.conf`. */
export const startNginx = Effect.fnUntraced(function* (service: Upstream, replacements: Replacements = {}) {
  const home = yield* temporaryDirectory("edge-")
  const port = yield* Effect.promise(freePort)
  const cache = join(home, "cache")
  mkdirSync(cache)
  writeFileSync(
    join(home, "site.conf"),
    adaptConfig("nginx.conf", {
      "/var/cache/nginx-prompt-retrieval": cache,
      "127.0.0.1:3000;": `127.0.0.1:${service.port};`,
      "127.0.0.1:4000;": `127.0.0.1:${yield* startWebApplication};`,
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
    `${process.getuid!() === 0 ? "user root;" : ""} daemon off; pid ${home}/pid;
      events {} http { access_log off; ${temporary.join(" ")} include ${home}/site.conf; }`
  )
  yield* runProgram("nginx", ["-p", home, "-e", "error.log", "-c", "nginx.conf"], port)
  return {
    port,
    /** Empties the cache as an operator would. */
    purge: async (): Promise<void> => {
      for (const name of readdirSync(cache)) rmSync(join(cache, name), { recursive: true })
    }
  }
})

/** Starts Varnish in front of a service. Applies replacements to `deploy/varnish.vcl`. */
export const startVarnish = Effect.fnUntraced(function* (service: Upstream, replacements: Replacements = {}) {
  const home = yield* temporaryDirectory("edge-")
  const port = yield* Effect.promise(freePort)
  const vcl = join(home, "site.vcl")
  const work = join(home, "work")
  writeFileSync(
    vcl,
    adaptConfig("varnish.vcl", { '.port = "3000"': `.port = "${service.port}"`, ...replacements })
  )
  const args = ["-F", "-j", "none", "-n", work, "-f", vcl, "-s", "malloc,32m"]
  yield* runProgram("varnishd", [...args, "-a", `127.0.0.1:${port}`], port)
  return {
    port,
    purge: async (): Promise<void> => {
      const { status, stderr } = spawnSync("varnishadm", ["-n", work, "ban obj.status == 200"], {
        env: { PATH: programPath }
      })
      if (status !== 0) throw new Error(`varnishadm: ${stderr}`)
    }
  }
})
