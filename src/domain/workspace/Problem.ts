/**
 * A problem of a value or a file. `path` is the path of the value, such as `prompts[3].versions[0].created_at`, or of
 * the file.
 */
export interface Problem {
  readonly path: string
  readonly message: string
}

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

/** The archive of a workspace is or would be larger than an import accepts. */
export const ArchiveTooLarge = { _tag: "ArchiveTooLarge" } as const
export type ArchiveTooLarge = typeof ArchiveTooLarge
