import { spawnSync } from "node:child_process"

/** Why Prometheus's own checks are left out here; `undefined` where they run. */
export const noPromtool: string | undefined =
  spawnSync("promtool", ["--version"]).status === 0 ? undefined : "no promtool on PATH"
if (noPromtool !== undefined) {
  if (process.env.CI !== undefined) throw new Error(noPromtool)
  console.warn(`Checks by promtool are left out: ${noPromtool}`)
}

/** Runs promtool, and gives what it said and its exit code: 0 where it found nothing. */
export const promtool = (args: ReadonlyArray<string>, input = "") => {
  const { status, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" })
  return { code: status, said: stdout + stderr }
}
