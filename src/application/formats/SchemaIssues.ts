import * as SchemaIssue from "effect/SchemaIssue"

/** Formats the issue of a schema as a list of paths and messages. */
export const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()
