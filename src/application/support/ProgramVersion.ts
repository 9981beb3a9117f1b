/** The version of this program, as in `package.json`, which a bundle of an embedder does not contain. */
export const programVersion = "0.1.0"
