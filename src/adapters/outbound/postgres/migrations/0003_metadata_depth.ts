/**
 * A version's metadata nests at most 100 levels deep, as in an archive: what nests some thousands deep can be stored,
 * but not written as JSON. Rows that are there already stay as they are.
 */
export const statements: ReadonlyArray<string> = [
  `alter table prompt_versions add constraint prompt_versions_metadata_depth check (
    not jsonb_path_exists(metadata, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")')
  ) not valid`
]
