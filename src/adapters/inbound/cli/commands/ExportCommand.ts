import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { UsageError } from "../output/CommandError.ts"
import { booleanFlag, json, optional, workspace } from "../input/Flags.ts"
import { handle } from "../CommandHandler.ts"

/** The command `export`. Only the module of the chosen format is loaded. */
export const exportCommand = Command.make(
  "export",
  {
    workspace,
    format: Flag.Literals("format", ["archive", "files"]).pipe(
      Flag.withDefault("archive" as const),
      Flag.withDescription(
        "archive: one JSON file, with the hashes of the keys and their owners' emails; files: a directory with one Markdown file per prompt (default: archive)"
      )
    ),
    out: optional(Flag.String("out")).pipe(
      Flag.withDescription("Where to write (default for an archive: standard output)")
    ),
    update: booleanFlag("update", "For files: bring edits of the workspace into an existing directory"),
    overwrite: booleanFlag(
      "overwrite",
      "With --update: also replace and remove files that were added or edited since the latest import"
    ),
    json
  },
  handle(
    Effect.fnUntraced(function* ({ workspace, format, out, update, overwrite, json }) {
      if (overwrite && !update) return yield* new UsageError({ message: "--overwrite needs --update" })
      if (format === "files") {
        if (out === undefined)
          return yield* new UsageError({ message: "--format files needs a directory: add --out DIR" })
        const { runFilesExport } = yield* Effect.promise(() => import("../files/FilesExport.ts"))
        return yield* runFilesExport(workspace, { out, update, overwrite, json })
      }
      if (update) return yield* new UsageError({ message: "--update is for --format files" })
      const { runArchiveExport } = yield* Effect.promise(() => import("../archive/ArchiveExport.ts"))
      yield* runArchiveExport(workspace, out, json)
    })
  )
).pipe(
  Command.withDescription("Export a workspace in a form that import accepts"),
  Command.withExamples([
    { command: "prompt-retrieval export --workspace Acme --out workspace.json" },
    { command: "prompt-retrieval export --workspace Acme --format files --out prompts-of-acme" },
    { command: "prompt-retrieval export --workspace Acme --format files --update --out prompts-of-acme" }
  ])
)
