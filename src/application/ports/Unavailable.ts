/**
 * The one failure that any port may have beside its own outcomes: what stands behind it can't be reached or did
 * not answer in time. Trying again later may help. Anything worse is a defect.
 */
export const Unavailable = { _tag: "Unavailable" } as const
export type Unavailable = typeof Unavailable
