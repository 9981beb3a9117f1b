import { execSync } from "node:child_process"
import { createRequire } from "node:module"

const isInstalled = (name) => {
  try {
    return Boolean(createRequire(import.meta.url).resolve(name))
  } catch {
    return false
  }
}

// `npm ci --omit=dev` installs no compiler. The service runs without the built client.
if (isInstalled("typescript/package.json")) execSync("npm run build", { stdio: "inherit" })
