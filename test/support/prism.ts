import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

const main = createRequire(import.meta.url).resolve("@stoplight/prism-cli")

/** A rule of the description that a request or an answer breaks; where, as in `["response", "body", "data"]`. */
export interface Violation {
  readonly location: readonly ["request" | "response", ...ReadonlyArray<string>]
  readonly message: string
}

/** What a validating proxy found in one exchange. */
export const violationsOf = (response: Response): ReadonlyArray<Violation> =>
  JSON.parse(response.headers.get("sl-violations") ?? "[]")

/** Resolves with its address once the proxy listens; rejects when it ends before. */
const launch = (document: string, upstream: string) => {
  const args = ["proxy", document, upstream, "--host", "127.0.0.1", "--port", "0", "--errors=false"]
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] })
  const listening = new Promise<string>((resolve, reject) => {
    let said = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        said += text
        const found = /Prism is listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(said)
        if (found !== null) resolve(found[1]!)
      })
    }
    child.once("exit", () => reject(new Error(`Prism ended: ${said}`)))
    child.once("error", reject)
  })
  return { child, listening }
}

/**
 * The address of a proxy before a service that holds each exchange against an OpenAPI document and says in the answer
 * what is wrong with it. It ends with the scope.
 */
export const prism = (openApi: unknown, upstream: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "prism-"))),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
    )
    const document = join(directory, "openapi.json")
    writeFileSync(document, JSON.stringify(openApi))
    const { listening } = yield* Effect.acquireRelease(
      Effect.sync(() => launch(document, upstream)),
      ({ child }) =>
        Effect.promise(async () => {
          if (child.exitCode !== null || child.signalCode !== null) return
          const ended = once(child, "exit")
          child.kill("SIGKILL")
          await ended
        })
    )
    return yield* Effect.promise(() => listening)
  })
