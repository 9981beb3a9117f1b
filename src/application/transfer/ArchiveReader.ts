import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isJsonObject } from "../../domain/Json.ts"
import { InvalidContent } from "../../domain/workspace/Problem.ts"
import type { WorkspacePart } from "../../domain/workspace/WorkspaceParts.ts"
import { Archive } from "./Archive.ts"
import { formatIssue, ProblemList } from "./ProblemList.ts"
import { archiveMembers, isWorkspaceList, type RawPart } from "./RawPart.ts"
import { ReferenceChecker } from "./ReferenceChecker.ts"

type Decode<A> = (value: unknown) => Result.Result<A, Schema.SchemaError>

const makeDecoder = <A>(schema: Schema.Decoder<A>): Decode<A> =>
  Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })

const decodeFormat = makeDecoder(Archive.fields.format)
const decodeWorkspace = makeDecoder(Archive.fields.workspace)
const decoders = {
  users: makeDecoder(Archive.fields.users.value),
  api_keys: makeDecoder(Archive.fields.api_keys.value),
  folders: makeDecoder(Archive.fields.folders.value),
  tags: makeDecoder(Archive.fields.tags.value),
  fragments: makeDecoder(Archive.fields.fragments.value),
  prompts: makeDecoder(Archive.fields.prompts.value)
}

const appendPath = (base: string, segments: ReadonlyArray<unknown>): string =>
  segments.reduce<string>(
    (path, segment) => (typeof segment === "number" ? `${path}[${segment}]` : `${path}.${String(segment)}`),
    base
  )

/**
 * Reads an archive part by part. The members may come in any order; the root comes last. Keeps ids, other unique values
 * and the first problems in memory, but no items, so that an archive can be larger than the memory. If a value is
 * malformed or missing, the problems of `ReferenceChecker` are not reported.
 */
export class ArchiveReader {
  readonly #format = new ProblemList()
  readonly #references = new ReferenceChecker()
  readonly #members = new Set<string>()
  readonly #unknownMembers = new ProblemList()

  /**
   * Reads the next value and returns it as a part of the workspace. Returns `undefined` if the value is invalid or is
   * not a part.
   */
  read({ path, value }: RawPart): WorkspacePart | undefined {
    const [key, index] = path
    if (key === undefined) {
      this.#readRoot(value)
      return undefined
    }
    if (index === undefined) return this.#readMember(key, value)
    if (!isWorkspaceList(key)) return undefined
    const itemPath = `${key}[${index}]`
    const item = this.#decode<unknown>(decoders[key], itemPath, value)
    return item === undefined ? undefined : this.#check({ list: key, item } as WorkspacePart, itemPath)
  }

  /** True if a problem was found in the parts that were read so far. */
  get hasProblems(): boolean {
    return this.#problems.count > 0
  }

  /** Returns an error with the problems that were found. Call this method after the last part. */
  toError(): InvalidContent {
    const { first, count } = this.#problems
    return InvalidContent(first, count)
  }

  get #problems(): ProblemList {
    return this.#format.count > 0 ? this.#format : this.#references.problems
  }

  #readMember(key: string, value: unknown): WorkspacePart | undefined {
    if (!archiveMembers.includes(key)) {
      this.#unknownMembers.add(key, "Expected no excess property")
      return undefined
    }
    if (this.#members.has(key)) this.#format.add(key, "is a duplicate")
    this.#members.add(key)
    if (isWorkspaceList(key) && !Array.isArray(value)) this.#format.add(key, "Expected array")
    if (key === "format") this.#decode(decodeFormat, key, value)
    if (key !== "workspace") return undefined
    const item = this.#decode(decodeWorkspace, key, value)
    return item === undefined ? undefined : this.#check({ list: "workspace", item }, key)
  }

  #readRoot(value: unknown): void {
    if (!isJsonObject(value)) {
      this.#format.add("", "Expected object")
      return
    }
    if (this.#members.size === 0) {
      this.#format.add("", `is not a workspace archive: it has none of ${archiveMembers.join(", ")}`)
      return
    }
    this.#format.addAll(this.#unknownMembers.first, this.#unknownMembers.count)
    for (const key of archiveMembers) if (!this.#members.has(key)) this.#format.add(key, "Missing key")
    this.#references.end()
  }

  #decode<A>(decode: Decode<A>, path: string, value: unknown): A | undefined {
    const decoded = decode(value)
    if (Result.isSuccess(decoded)) return decoded.success
    for (const issue of formatIssue(decoded.failure.issue).issues) {
      this.#format.add(appendPath(path, issue.path ?? []), issue.message)
    }
    return undefined
  }

  #check(part: WorkspacePart, path: string): WorkspacePart {
    this.#references.check(part, path)
    return part
  }
}
