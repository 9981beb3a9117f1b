/**
 * The version of this program. Repeats the version in `package.json`, because a bundle of an embedder does not contain
 * that file.
 */
export const programVersion = "0.1.0"
