import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { InvalidContent } from "../../domain/workspace/Problem.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { WorkspacePart } from "../../domain/workspace/WorkspaceParts.ts"
import { ArchiveReader } from "../transfer/ArchiveReader.ts"
import { ArchiveWriter } from "../transfer/ArchiveWriter.ts"
import type { RawPart } from "../transfer/RawPart.ts"
import type { Unavailable } from "../ports/Unavailable.ts"
import type { WorkspaceNotFound, WorkspaceStore } from "../ports/WorkspaceStore.ts"

/**
 * Reads the parts of a workspace from an archive. After the first problem, the stream emits no more parts, because the
 * import will fail. The stream still reads the archive to the end, and then fails with `InvalidContent`, which counts
 * all problems.
 */
export const readParts = <E>(
  source: Stream.Stream<RawPart, E>
): Stream.Stream<WorkspacePart, E | InvalidContent> =>
  Stream.suspend(() => {
    const reader = new ArchiveReader()
    const end: Stream.Stream<never, InvalidContent> = Stream.suspend(() =>
      reader.hasProblems ? Stream.fail(reader.toError()) : Stream.empty
    )
    return source.pipe(
      Stream.map((raw) => reader.read(raw)),
      Stream.filter((part): part is WorkspacePart => part !== undefined && !reader.hasProblems),
      Stream.concat(end)
    )
  })

/** The minimum number of characters of an export that are collected before they are written. */
const minWriteLength = 64 * 1024

/**
 * Writes a workspace as an archive. Each text that is passed to `write`, except the last, has at least `minWriteLength`
 * characters.
 */
export const writeArchive = Effect.fnUntraced(function* <E>(
  { exportWorkspace }: WorkspaceStore["Service"],
  workspace: WorkspaceId,
  write: (text: string) => Effect.Effect<void, E>
): Effect.fn.Return<void, E | WorkspaceNotFound | Unavailable> {
  const writer = new ArchiveWriter()
  let text = ""
  yield* exportWorkspace(
    workspace,
    Effect.fnUntraced(function* (parts) {
      for (const part of parts) {
        text += writer.write(part)
        if (text.length < minWriteLength) continue
        yield* write(text)
        text = ""
      }
    })
  )
  yield* write(text + writer.end())
})
