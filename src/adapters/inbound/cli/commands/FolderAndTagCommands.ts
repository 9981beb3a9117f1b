import * as Command from "effect/cli/Command"
import type { Folder, WorkspaceTag } from "../../../../domain/Workspace.ts"
import { json, workspace } from "../input/Flags.ts"
import { handleAndPrint } from "../CommandHandler.ts"
import { formatTable } from "../output/Output.ts"
import { administerWorkspace } from "../WithDatabase.ts"

const formatFolders = (folders: ReadonlyArray<Folder>): string =>
  formatTable(
    ["ID", "NAME"],
    folders.map(({ id, name }) => [id, name])
  )

const listFolders = Command.make(
  "list",
  { workspace, json },
  handleAndPrint(
    ({ workspace }) => administerWorkspace(workspace, ({ folders }, id) => folders(id)),
    formatFolders
  )
).pipe(
  Command.withDescription("List a workspace's folders by name, with their ids"),
  Command.withExamples([{ command: "prompt-retrieval folders list --workspace Acme" }])
)

export const folderCommands = Command.make("folders").pipe(
  Command.withDescription("List the folders of a workspace"),
  Command.withSubcommands([listFolders])
)

const formatTags = (tags: ReadonlyArray<WorkspaceTag>): string =>
  formatTable(
    ["ID", "NAME", "COLOR"],
    tags.map(({ id, name, color }) => [id, name, color])
  )

const listTags = Command.make(
  "list",
  { workspace, json },
  handleAndPrint(({ workspace }) => administerWorkspace(workspace, ({ tags }, id) => tags(id)), formatTags)
).pipe(
  Command.withDescription("List a workspace's tags by name"),
  Command.withExamples([{ command: "prompt-retrieval tags list --workspace Acme" }])
)

export const tagCommands = Command.make("tags").pipe(
  Command.withDescription("List the tags of a workspace"),
  Command.withSubcommands([listTags])
)
