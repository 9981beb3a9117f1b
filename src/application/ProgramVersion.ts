/** The version in `package.json`, repeated here because an embedder's bundle does not contain `package.json`. */
export const programVersion = "0.1.0"

/** The text of the version that the command line prints. */
export const versionText = `prompt-retrieval v${programVersion}`
