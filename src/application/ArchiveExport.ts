import { type Archive, type ArchivePart, type ArchivePrompt, archiveOf, archiveWriter } from "./Archive.ts"

type Use = ArchivePrompt["fragments"][number]
type Version = ArchivePrompt["versions"][number]

/**
 * One piece of an exported archive. A prompt comes without its fragments and versions: each of them follows as a piece of
 * its own, fragments first, so that no reader needs to hold a whole history.
 */
export type ExportPart =
  | Exclude<ArchivePart, { readonly list: "prompts" }>
  | { readonly list: "prompts"; readonly item: Omit<ArchivePrompt, "fragments" | "versions"> }
  | { readonly list: "prompt_fragments"; readonly item: Use }
  | { readonly list: "prompt_versions"; readonly item: Version }

/** The pieces in which an archive is exported. */
export const exportPartsOf = function* (parts: Iterable<ArchivePart>): Generator<ExportPart> {
  for (const part of parts) {
    if (part.list !== "prompts") {
      yield part
      continue
    }
    const { fragments, versions, ...item } = part.item
    yield { list: "prompts", item }
    for (const item of fragments) yield { list: "prompt_fragments", item }
    for (const item of versions) yield { list: "prompt_versions", item }
  }
}

interface PromptLists {
  readonly fragments: Array<Use>
  readonly versions: Array<Version>
}

/** The archive that exported pieces form. */
export const archiveOfExport = (parts: Iterable<ExportPart>): Archive => {
  const whole: Array<ArchivePart> = []
  let current: PromptLists = { fragments: [], versions: [] }
  for (const part of parts) {
    switch (part.list) {
      case "prompts":
        current = { fragments: [], versions: [] }
        whole.push({ list: "prompts", item: { ...part.item, ...current } })
        break
      case "prompt_fragments":
        current.fragments.push(part.item)
        break
      case "prompt_versions":
        current.versions.push(part.item)
        break
      default:
        whole.push(part)
    }
  }
  return archiveOf(whole)
}

const emptyLists = `"fragments":[],"versions":[]}`

/** Writes exported pieces as the text of the archive's file, the same text that `archiveWriter` writes. */
export const exportWriter = () => {
  const writer = archiveWriter()
  let open: "fragments" | "versions" | undefined
  let isFirst = true
  /** Ends the prompt that is being written, if any. */
  const close = (): string => {
    const text = open === undefined ? "" : open === "fragments" ? `],"versions":[]}` : "]}"
    open = undefined
    return text
  }
  const enter = (list: "fragments" | "versions"): string => {
    if (open === list) {
      const comma = isFirst ? "" : ","
      isFirst = false
      return comma
    }
    open = list
    isFirst = false
    return `],"versions":[`
  }
  return {
    write: (part: ExportPart): string => {
      switch (part.list) {
        case "prompt_fragments":
          return `${enter("fragments")}${JSON.stringify(part.item)}`
        case "prompt_versions":
          return `${enter("versions")}${JSON.stringify(part.item)}`
        case "prompts": {
          const item = { ...part.item, fragments: [], versions: [] }
          const text = `${close()}${writer.write({ list: "prompts", item })}`
          open = "fragments"
          isFirst = true
          return `${text.slice(0, -emptyLists.length)}"fragments":[`
        }
        default:
          return `${close()}${writer.write(part)}`
      }
    },
    end: (): string => `${close()}${writer.end()}`
  }
}
