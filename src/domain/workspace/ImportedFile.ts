import * as Schema from "effect/Schema"

/**
 * A file that the latest import or export of a directory recorded: its path, and the prompt or fragment that it
 * described.
 */
export const ImportedFile = Schema.Struct({
  kind: Schema.Literals(["prompt", "fragment"]),
  /** The id of the prompt or fragment in the workspace. */
  target_id: Schema.String,
  /** The path of the file relative to the directory, with slashes as separators. */
  path: Schema.String,
  /** The id in the front matter of the file; null if there is none. */
  file_id: Schema.NullOr(Schema.String),
  /** The hash of the state that the file described: 64 lowercase hexadecimal digits. */
  hash: Schema.String
})
export type ImportedFile = typeof ImportedFile.Type
