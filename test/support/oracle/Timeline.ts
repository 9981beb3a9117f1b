/** How the service treats a key: it lets the key read a workspace, or rejects it with this status and message. */
export type Admission = { readonly workspace: string } | { readonly rejection: string }

/**
 * The content of a resource, in parts that the service may read with separate statements. The list of prompts has two
 * parts: its items and their total. Every other resource has one part.
 */
export type Parts = ReadonlyArray<string>

/** The parts of a resource that does not exist. */
export const notFound: Parts = ["404"]

/** The state of a world: how each key is treated, and what the resources of each workspace contain. */
export interface State {
  /** The admission of each key, by the index of the key. */
  readonly admissions: ReadonlyArray<Admission>
  /** The parts of each resource, by workspace and request target. An absent resource does not exist. */
  readonly contents: ReadonlyMap<string, ReadonlyMap<string, Parts>>
}

/** A committed transaction. Times are values of `performance.now()`. */
export interface Commit {
  readonly name: string
  /** A time shortly before COMMIT was sent. No reader sees the state earlier. */
  readonly startedAt: number
  /** A time shortly after COMMIT was acknowledged. Every read that starts after this time sees the state. */
  readonly endedAt: number
  readonly state: State
}

/** What a caller received. */
export type Outcome =
  | { readonly _tag: "Content"; readonly parts: Parts }
  | { readonly _tag: "Rejection"; readonly reason: string }
  /** No response or a 503, such as during a restart. */
  | { readonly _tag: "Unavailable"; readonly reason: string }
  /** A response that no history explains. */
  | { readonly _tag: "Unexpected"; readonly reason: string }

/** A request and its outcome. The requests of one caller follow one another. */
export interface Observation {
  readonly caller: string
  /** The index of the caller's key. */
  readonly key: number
  /** The process that responded. Undefined if the process was replaced during the request. */
  readonly process: string | undefined
  readonly target: string
  readonly startedAt: number
  readonly endedAt: number
  /** The age that the response states, in milliseconds: 0 unless it was served without the database. */
  readonly ageMs: number
  readonly outcome: Outcome
}

/** A disturbance and its span of time. */
export interface Disturbed {
  readonly name: string
  readonly startedAt: number
  readonly endedAt: number
}

/** Everything that happened while a history ran. */
export interface Timeline {
  readonly commits: ReadonlyArray<Commit>
  readonly disturbed: ReadonlyArray<Disturbed>
  readonly observations: ReadonlyArray<Observation>
}
