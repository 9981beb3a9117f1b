/** A file that was imported into a workspace: its path, and the prompt or fragment that it described. */
export interface ImportedFile {
  readonly kind: "prompt" | "fragment"
  /** The id of the prompt or fragment in the workspace. */
  readonly target_id: string
  /** The path of the file in its directory, with slashes. */
  readonly path: string
  /** The id in the front matter of the file; null if there is none. */
  readonly file_id: string | null
  /** The hash of the state that the file described: 64 lowercase hexadecimal digits. */
  readonly hash: string
}
