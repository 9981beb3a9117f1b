import { grantHint } from "../driver/SqlErrors.ts"

/**
 * This program cannot use the database's server or schema, or lacks a privilege. The message says what to do, or
 * contains the server's reason.
 */
export interface SchemaMismatch {
  readonly _tag: "SchemaMismatch"
  readonly message: string
}
const SchemaMismatch = (message: string): SchemaMismatch => ({ _tag: "SchemaMismatch", message })

/** The schema has version `version`, which is newer than the version `latest` of this program. */
export const schemaTooNew = (version: number, latest: number): SchemaMismatch =>
  SchemaMismatch(
    `the database's schema is version ${version} and this program knows versions up to ${latest}: upgrade the program`
  )

/** The schema has version `version` and needs the migrations up to number `latest`. */
export const schemaTooOld = (version: number, latest: number): SchemaMismatch =>
  SchemaMismatch(`the database's schema is version ${version} and this program needs ${latest}: run migrate`)

/** The server rejected a pending migration; `reason` is the server's message. */
export const migrationRejected = (reason: string): SchemaMismatch =>
  SchemaMismatch(`the database's schema needs a migration, which the server rejected: ${reason}`)

/** A migration is pending, and the role of the connection lacks `privilege`. */
export const migrationDenied = (role: string, privilege: string): SchemaMismatch =>
  SchemaMismatch(
    `the database's schema needs a migration, and the role ${role} lacks the privilege to run it: ${privilege}; ${grantHint}`
  )

/** The role of the connection lacks `privilege`, so the schema's version is unknown. */
export const versionUnreadable = (role: string, privilege: string): SchemaMismatch =>
  SchemaMismatch(
    `the role ${role} lacks the privilege to read the version of the database's schema: ${privilege}; ${grantHint}`
  )

/** The role of the connection lacks the privilege to read `tables`. The service reads these tables for its requests. */
export const tablesUnreadable = (role: string, tables: string): SchemaMismatch =>
  SchemaMismatch(
    `the role ${role} may not read these tables: ${tables}; grant it SELECT on them; ${grantHint}`
  )

/** Some triggers are missing or have the wrong firing mode, and `reason` is why the server rejected the correction. */
export const triggersDenied = (reason: string): SchemaMismatch =>
  SchemaMismatch(
    `some triggers are missing or have the wrong firing mode, and the server rejected the correction: ${reason}; run migrate as the owner of the tables`
  )

/** The oldest major version of PostgreSQL that has the functions which the migrations and queries call. */
const oldestServer = 14

/**
 * Returns the mismatch if the server is too old, and `undefined` otherwise. `versionNumber` is the server's
 * `server_version_num`: 130014 means version 13.14.
 */
export const findServerMismatch = (versionNumber: number): SchemaMismatch | undefined => {
  const major = Math.floor(versionNumber / 10_000)
  return major >= oldestServer
    ? undefined
    : SchemaMismatch(
        `the server is PostgreSQL ${major} and this program needs PostgreSQL ${oldestServer} or later: upgrade the server`
      )
}
