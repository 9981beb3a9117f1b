/**
 * Migration 6: the files of the latest import of files of each workspace.
 *
 * `files` is a list of `ImportedFile`. No reader sees the table, so it has no trigger. A file may outlive its prompt.
 */
export const statements: ReadonlyArray<string> = [
  `create table imported_files (
    workspace_id uuid primary key references workspaces on delete cascade,
    files jsonb not null
  )`
]
