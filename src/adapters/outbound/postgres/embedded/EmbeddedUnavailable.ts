import * as Data from "effect/Data"

/** The embedded database cannot run on this machine or as this user. */
export class EmbeddedUnavailable extends Data.TaggedError("EmbeddedUnavailable")<{
  readonly message: string
}> {
  constructor(reason: string) {
    super({
      message: `the embedded database cannot run here: ${reason}; set DATABASE_URL to use a PostgreSQL server`
    })
  }
}
