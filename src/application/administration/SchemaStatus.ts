export interface MigrationInfo {
  readonly id: number
  readonly name: string
}

export interface MigrationReport {
  /** The version of the schema now. */
  readonly version: number
  /** The migrations that this run performed, in their order. */
  readonly ran: ReadonlyArray<MigrationInfo>
}

/** The state of the database's schema, as this program sees it. */
export interface SchemaStatus {
  /** The number of the last migration that ran; 0 before the first. */
  readonly version: number
  /** The migrations of this program that have not run, in their order. */
  readonly pending: ReadonlyArray<MigrationInfo>
}
