export interface MigrationInfo {
  readonly id: number
  readonly name: string
}

export interface MigrationReport {
  /** The version of the schema after the run. */
  readonly version: number
  /** The migrations that this run performed, in the order in which they ran. */
  readonly ran: ReadonlyArray<MigrationInfo>
}

/** The state of the database's schema, compared with the migrations of this program. */
export interface SchemaStatus {
  /** The number of the last migration that ran; 0 if no migration has run. */
  readonly version: number
  /** The migrations of this program that have not run, in the order in which they will run. */
  readonly pending: ReadonlyArray<MigrationInfo>
}
