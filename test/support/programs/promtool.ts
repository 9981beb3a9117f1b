import { spawnSync } from "node:child_process"

/** Runs promtool and returns its output and its exit code, which is 0 if promtool found no problem. */
export const promtool = (args: ReadonlyArray<string>, input = "") => {
  const { status, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" })
  return { code: status, output: stdout + stderr }
}
