/** The version in `package.json`, repeated here because a bundle of an embedder does not contain that file. */
export const programVersion = "0.1.0"

/** The version, as the command line prints it. */
export const versionText = `prompt-retrieval v${programVersion}`
