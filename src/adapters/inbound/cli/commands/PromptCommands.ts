import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import {
  FolderId,
  type Prompt,
  type PromptSummary,
  PromptType,
  parseUuid
} from "../../../../domain/Prompt.ts"
import { maxInt32 } from "../../../../domain/Sizes.ts"
import { maxVersionNumber, parseVersionNumber, type VersionNumber } from "../../../../domain/Version.ts"
import type { Folder, WorkspaceTag } from "../../../../domain/Workspace.ts"
import { makeCommand, makeGroup, withHelp } from "../CommandBuilders.ts"
import { optional, parsedFlag, workspace } from "../input/Flags.ts"
import { openPrompt, openPrompts, openWorkspace } from "../OpenDatabase.ts"
import { CommandError, UsageError } from "../output/CommandError.ts"
import { formatFields, makeTableFormatter, toOutputText } from "../output/Output.ts"

const promptArgument = Argument.String("prompt").pipe(
  Argument.withDescription(
    "Id of the prompt; or its name, such as support-agent; or its title, if its name is the slug of the title"
  )
)

const formatPrompts = makeTableFormatter<PromptSummary>({
  ID: "id",
  TITLE: "title",
  TYPE: "prompt_type",
  MODEL: "target_model",
  VERSION: "current_version",
  UPDATED: "updated_at"
})

const list = makeCommand(
  "list",
  {
    workspace,
    folder: optional(
      parsedFlag("folder", parseUuid, "a UUID").pipe(
        Flag.withMetavar("<id>"),
        Flag.map((id) => FolderId.make(id))
      ),
      "List only the prompts of the folder with this id, as shown by folders list"
    ),
    tag: optional(Flag.String("tag"), "List only the prompts that have the tag with this name"),
    type: optional(Flag.Literals("type", PromptType.literals), "List only the prompts of this type")
  },
  Effect.fnUntraced(function* ({ workspace, folder, tag, type }) {
    const { prompts, operator } = yield* openPrompts(workspace)
    // Reads a single page, because a prompt that changes between two reads could move other prompts between pages.
    const page = { page: 1, per_page: maxInt32 }
    return (yield* prompts.list(operator, { folder_id: folder, tag, type }, page)).items
  }),
  formatPrompts
).pipe(
  withHelp(
    "List a workspace's prompts that are not archived, most recently updated first",
    "prompts list --workspace Acme",
    "prompts list --workspace Acme --tag production --json"
  )
)

const formatPrompt = ({ current_content, tags, ...fields }: Prompt): string =>
  `${formatFields({ ...fields, tags: tags.map(({ name }) => name).join(", ") })}\n\n${toOutputText(current_content)}`

const get = makeCommand(
  "get",
  { prompt: promptArgument, workspace },
  (input) => Effect.flatMap(openPrompt(input), ({ prompts, operator, id }) => prompts.get(operator, id)),
  formatPrompt
).pipe(
  withHelp(
    "Show a prompt: its fields, then its current content",
    "prompts get support-agent --workspace Acme"
  )
)

const resolve = makeCommand(
  "resolve",
  { prompt: promptArgument, workspace },
  (input) =>
    Effect.flatMap(openPrompt(input), ({ prompts, operator, id }) =>
      // Suppresses the warning of the use case, because the error contains the same information.
      Effect.provideService(prompts.getResolved(operator, id), References.MinimumLogLevel, "Error")
    ),
  ({ resolved_content }) => toOutputText(resolved_content)
).pipe(
  withHelp(
    "Print a prompt's content with its fragments appended and their slots filled",
    "prompts resolve support-agent --workspace Acme > agent.txt"
  )
)

const versionFlag = (name: string) =>
  parsedFlag(name, parseVersionNumber, `a version number, 1 to ${maxVersionNumber}`).pipe(
    Flag.withMetavar("<version>")
  )

const describeSide = (number: VersionNumber | null): string =>
  number === null ? "current content" : `version ${number}`

/**
 * Compares two versions of a prompt by line. A null `to` means the current content. The default of `from` is the last
 * version. If the last version has the content of `to`, the default is the previous version, so that the diff shows the
 * latest change.
 */
const compareVersions = Effect.fnUntraced(function* (
  { prompts, operator, id }: Effect.Success<ReturnType<typeof openPrompt>>,
  from: VersionNumber | undefined,
  to: VersionNumber | null
) {
  const readContent = (number: VersionNumber | null) =>
    number === null
      ? Effect.map(prompts.get(operator, id), ({ current_content }) => current_content)
      : prompts.getVersion(operator, id, String(number)).pipe(
          Effect.map(({ content }) => content),
          Effect.catchTag("VersionNotFound", () =>
            Effect.fail(new CommandError({ message: `prompt ${id} has no version ${number}` }))
          )
        )
  const after = yield* readContent(to)
  let older = from
  if (older === undefined) {
    const { items } = yield* prompts.listVersions(operator, id, { page: 1, per_page: 2 })
    const [last, previous] = items.map(({ version_number }) => version_number)
    if (last === undefined)
      return yield* new CommandError({ message: `prompt ${id} has no versions to compare` })
    older = (yield* readContent(last)) === after && previous !== undefined ? previous : last
  }
  const before = yield* readContent(older)
  const { diffTexts } = yield* Effect.promise(() => import("../output/ChangeText.ts"))
  const changes = diffTexts(before, after)
  const sides = [describeSide(older), describeSide(to)]
  if (changes === undefined)
    return yield* new CommandError({ message: `${sides.join(" and ")} differ in too many lines to compare` })
  const diff = changes === "" ? "" : `--- ${sides[0]}\n+++ ${sides[1]}\n${changes}`
  return { id, from: older, to, diff }
})

const diff = makeCommand(
  "diff",
  {
    prompt: promptArgument,
    from: optional(
      versionFlag("from"),
      "Version to compare (default: the last version or, if it equals the current content, the version before it)"
    ),
    to: optional(
      versionFlag("to"),
      "Version to compare with, if --from is given (default: the current content)"
    ),
    workspace
  },
  Effect.fnUntraced(function* ({ from, to, ...input }) {
    if (from === undefined && to !== undefined)
      return yield* new UsageError({ message: "--to needs a version to compare: add --from VERSION" })
    return yield* compareVersions(yield* openPrompt(input), from, to ?? null)
  }),
  ({ from, to, diff }) =>
    diff === ""
      ? `Version ${from} equals ${to === null ? "the " : ""}${describeSide(to)}`
      : toOutputText(diff.trimEnd())
).pipe(
  withHelp(
    "Compare two versions of a prompt, or a version with the current content, by line",
    'prompts diff "Support agent" --workspace Acme',
    "prompts diff support-agent --workspace Acme --from 1 --to 3"
  )
)

export const promptCommands = makeGroup("prompts", "Read the prompts of a workspace", [
  list,
  get,
  resolve,
  diff
])

const listFolders = makeCommand(
  "list",
  { workspace },
  ({ workspace }) => Effect.flatMap(openWorkspace(workspace), ({ folders, id }) => folders(id)),
  makeTableFormatter<Folder>({ ID: "id", NAME: "name" })
).pipe(withHelp("List a workspace's folders by name, with their ids", "folders list --workspace Acme"))

export const folderCommands = makeGroup("folders", "List the folders of a workspace", [listFolders])

const listTags = makeCommand(
  "list",
  { workspace },
  ({ workspace }) => Effect.flatMap(openWorkspace(workspace), ({ tags, id }) => tags(id)),
  makeTableFormatter<WorkspaceTag>({ ID: "id", NAME: "name", COLOR: "color" })
).pipe(withHelp("List a workspace's tags by name", "tags list --workspace Acme"))

export const tagCommands = makeGroup("tags", "List the tags of a workspace", [listTags])
