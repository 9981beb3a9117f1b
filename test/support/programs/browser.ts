import { join } from "node:path"
import { pathToFileURL } from "node:url"
import * as Effect from "effect/Effect"
import { temporaryDirectory } from "../testDirectory.ts"
import { toolsDirectory } from "./tools.ts"

/** An object of Playwright, such as a page. */
// biome-ignore lint/suspicious/noExplicitAny: its types are not installed here
export type Playwright = any

const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Chromium resolves no host except this machine.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
]

const launch = async (directory: string): Promise<Playwright> => {
  const driver = join(toolsDirectory, "node_modules/playwright-core/index.mjs")
  const { chromium } = await import(pathToFileURL(driver).href)
  return chromium.launchPersistentContext(directory, {
    executablePath: "/usr/bin/chromium",
    headless: true,
    args: flags,
    viewport: { width: 1440, height: 1000 }
  })
}

/** Runs Chromium with an empty profile until the scope closes. Chromium can connect only to this machine. */
export const openBrowser = Effect.gen(function* () {
  const directory = yield* temporaryDirectory("chromium-")
  return yield* Effect.acquireRelease(
    Effect.promise(() => launch(directory)),
    (context) => Effect.promise(() => context.close())
  )
})
