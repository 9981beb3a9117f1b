import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

const main = createRequire(import.meta.url).resolve("@stoplight/prism-cli")

/** A rule of the OpenAPI document that a request or a response breaks. `location` is, for example, `["response", "body", "data"]`. */
export interface Violation {
  readonly location: readonly ["request" | "response", ...ReadonlyArray<string>]
  readonly message: string
}

/** Returns the violations that the validating proxy found in one exchange. */
export const parseViolations = (response: Response): ReadonlyArray<Violation> =>
  JSON.parse(response.headers.get("sl-violations") ?? "[]")

/** Starts the proxy. `listening` resolves to its address, and rejects if the proxy exits before it listens. */
const launch = (document: string, upstream: string) => {
  const args = ["proxy", document, upstream, "--host", "127.0.0.1", "--port", "0", "--errors=false"]
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] })
  const listening = new Promise<string>((resolve, reject) => {
    let output = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text
        const match = /Prism is listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(output)
        if (match !== null) resolve(match[1]!)
      })
    }
    child.once("exit", () => reject(new Error(`Prism exited: ${output}`)))
    child.once("error", reject)
  })
  return { child, listening }
}

/**
 * Starts a proxy in front of a service that validates each exchange against an OpenAPI document and reports
 * violations in a response header, and returns the proxy's address. Closing the scope stops the proxy.
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
          const exited = once(child, "exit")
          child.kill("SIGKILL")
          await exited
        })
    )
    return yield* Effect.promise(() => listening)
  })
