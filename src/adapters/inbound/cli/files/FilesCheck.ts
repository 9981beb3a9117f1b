import { existsSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import {
  checkFiles,
  compareInterfaces,
  type PromptInterface
} from "../../../../application/transfer/CallerChanges.ts"
import { InvalidFiles } from "../../../../application/transfer/PromptFile.ts"
import { listCallerChanges } from "../output/ChangeText.ts"
import { UsageError } from "../output/CommandError.ts"
import { makeTable, print, printWarnings } from "../output/Output.ts"
import { readTexts } from "./PromptDirectory.ts"

export interface DirectoryCheckOptions {
  readonly directory: string
  /** An earlier state of the directory; if undefined, the directory is only checked. */
  readonly against: string | undefined
  readonly json: boolean
}

const formatPrompts = makeTable<PromptInterface>({
  NAME: "name",
  TYPE: "type",
  SLOTS: ({ slots }) => slots.join(", ") || "-",
  FILE: "path"
})

/**
 * Checks the directory with the earlier state, which may have no prompts. The paths of its problems begin with `against`.
 */
const checkEarlier = (against: string) =>
  Effect.suspend(() =>
    existsSync(against)
      ? Effect.void
      : Effect.fail(new UsageError({ message: `the directory of --against does not exist: ${against}` }))
  ).pipe(
    Effect.andThen(readTexts(against, false)),
    Effect.flatMap((texts) => Effect.fromResult(checkFiles(texts))),
    Effect.catchTag("InvalidFiles", ({ problems, count }) =>
      Effect.fail(
        InvalidFiles(
          problems.map(({ path, message }) => ({ path: join(against, path), message })),
          count
        )
      )
    )
  )

/**
 * Checks a directory of prompts, and prints its prompts and the changes that can break applications. Returns true if
 * there are such changes.
 */
export const runFilesCheck = Effect.fnUntraced(function* ({
  directory,
  against,
  json
}: DirectoryCheckOptions) {
  const { prompts, warnings } = yield* Effect.fromResult(checkFiles(yield* readTexts(directory, true)))
  const earlier = against === undefined ? [] : (yield* checkEarlier(against)).prompts
  const changes = compareInterfaces(earlier, prompts)
  if (!json) yield* printWarnings(warnings)
  yield* print(
    json,
    { prompts: prompts.map(({ id: _, ...prompt }) => prompt), caller_changes: changes, warnings },
    [formatPrompts(prompts), ...listCallerChanges(changes)].join("\n")
  )
  return changes.length > 0
})
