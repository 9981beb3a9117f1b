import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { toolsDirectory } from "./tools.ts"

/** An object of Playwright, such as a page. */
// biome-ignore lint/suspicious/noExplicitAny: its types are not installed here
export type Playwright = any

/** Loads the driver of Chromium. */
export const loadChromium = async () => {
  const path = join(toolsDirectory, "node_modules/playwright-core/index.mjs")
  const { chromium } = await import(pathToFileURL(path).href)
  return chromium
}
