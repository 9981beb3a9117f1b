import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

const root = join(import.meta.dirname, "../..")

/** The last commit of the previous version. Rolling updates from that version must work. */
const previousCommit = "0ca5600962875a7eb4d773b003e39ec9605e22e1"

/** Runs git in this checkout. Throws what git reports if it fails. */
const git = (...args: ReadonlyArray<string>): void => {
  const { status, stderr, error } = spawnSync("git", args, { cwd: root, encoding: "utf8" })
  if (status !== 0) throw new Error(`git ${args[0]}: ${error?.message ?? stderr.trim()}`)
}

const checkOut = (directory: string): void => {
  try {
    git("cat-file", "-e", `${previousCommit}^{commit}`)
  } catch (cause) {
    const remedy = "run the tests in a clone with the whole history (git fetch --unshallow)"
    throw new Error(`the previous version, commit ${previousCommit}, cannot be read: ${remedy}`, { cause })
  }
  git("worktree", "add", "--detach", directory, previousCommit)
  symlinkSync(join(root, "node_modules"), join(directory, "node_modules"))
}

/**
 * Checks out the previous version with the dependencies of this checkout, and returns the path of its `main.ts`.
 * Closing the scope removes it.
 */
export const previousProgram: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "previous-"))),
  (parent) => Effect.sync(() => rmSync(parent, { recursive: true }))
).pipe(
  Effect.map((parent) => join(parent, "checkout")),
  Effect.flatMap((directory) =>
    Effect.acquireRelease(
      Effect.sync(() => checkOut(directory)),
      () => Effect.sync(() => git("worktree", "remove", "--force", directory))
    ).pipe(Effect.as(join(directory, "src/main.ts")))
  )
)
