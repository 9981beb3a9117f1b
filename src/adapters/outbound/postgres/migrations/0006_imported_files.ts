/**
 * Migration 6: the files of the latest import of files of each workspace. Released, so this text never changes.
 *
 * `file_id` is the id in the file's front matter, `target_id` the id of the prompt or fragment that the file
 * describes in the workspace, `hash` the SHA-256 hash of the state that the file described. No reader sees the table,
 * so it has no trigger. A record may outlive its prompt. Programs that do not know the table work as before.
 */
export const statements: ReadonlyArray<string> = [
  `create table imported_files (
    workspace_id uuid not null references workspaces on delete cascade,
    kind text not null check (kind in ('prompt', 'fragment')),
    target_id uuid not null,
    path text not null,
    file_id uuid,
    hash text not null check (hash ~ '^[0-9a-f]{64}$'),
    primary key (workspace_id, kind, target_id)
  )`
]
