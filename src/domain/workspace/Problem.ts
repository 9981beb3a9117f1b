/** A broken rule and the path of the value that breaks it, such as `prompts[3].versions[0].created_at`. */
export interface Problem {
  readonly path: string
  readonly message: string
}

/** The kind of owner of a value that an import must not take over. */
export type ConflictOwner = "workspace" | "user" | "key"

/** Returns the problem of an id, an email or a hash that belongs to another owner. */
export const toConflict = (path: string, owner: ConflictOwner): Problem => ({
  path,
  message: `belongs to another ${owner}`
})

/**
 * A change failed, because its content is invalid for the workspace. Nothing has changed. `problems` contains the first
 * problems, and `count` is the number of all problems.
 */
export interface InvalidContent {
  readonly _tag: "InvalidContent"
  readonly problems: ReadonlyArray<Problem>
  readonly count: number
}
export const InvalidContent = (
  problems: ReadonlyArray<Problem>,
  count = problems.length
): InvalidContent => ({ _tag: "InvalidContent", problems, count })
