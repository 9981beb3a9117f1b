import { spawnSync } from "node:child_process"

/** The reason why checks with promtool are skipped; `undefined` if they run. */
export const noPromtool: string | undefined =
  spawnSync("promtool", ["--version"]).status === 0 ? undefined : "no promtool on PATH"
if (noPromtool !== undefined) {
  if (process.env.CI !== undefined) throw new Error(noPromtool)
  console.warn(`Checks with promtool are skipped: ${noPromtool}`)
}

/** Runs promtool and returns its output and its exit code, which is 0 if promtool found no problem. */
export const promtool = (args: ReadonlyArray<string>, input = "") => {
  const { status, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" })
  return { code: status, output: stdout + stderr }
}
