/**
 * Migration 3: limits the nesting of a version's metadata to 100 levels, the limit of an archive. PostgreSQL stores
 * JSON that nests thousands of levels deep, but cannot write it as text. Existing rows are not checked. Released,
 * so this text never changes.
 */
export const statements: ReadonlyArray<string> = [
  `alter table prompt_versions add constraint prompt_versions_metadata_depth check (
    not jsonb_path_exists(metadata, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")')
  ) not valid`
]
