import { type ExportPart, type WorkspaceList, workspaceLists } from "../../domain/workspace/WorkspaceParts.ts"
import { archiveFormat } from "./Archive.ts"

type PromptList = "fragments" | "versions"

/**
 * Writes an exported workspace as the text of an archive, part by part, in the order of an export. Each item of a list
 * of the workspace is on its own line, so that a line-based diff of two archives is readable. `write` and `end` return
 * the text to append.
 */
export class ArchiveWriter {
  /** The index of the list that is being written; -1 before the first list. */
  #list = -1
  #isListEmpty = true
  /** The list that is being written in the current prompt; undefined if no prompt is being written. */
  #promptList: PromptList | undefined
  #isPromptListEmpty = true

  write(part: ExportPart): string {
    switch (part.list) {
      case "workspace":
        return `{"format":"${archiveFormat}",\n"workspace":${JSON.stringify(part.item)}`
      case "prompt_fragments":
        return `${this.#nextInPrompt("fragments")}${JSON.stringify(part.item)}`
      case "prompt_versions":
        return `${this.#nextInPrompt("versions")}${JSON.stringify(part.item)}`
      case "prompts": {
        const text = this.#nextInList("prompts")
        this.#promptList = "fragments"
        this.#isPromptListEmpty = true
        return `${text}${JSON.stringify(part.item).slice(0, -1)},"fragments":[`
      }
      case "api_keys": {
        // The archive omits `expires_at` of a key that never expires, so that older versions of the program can import
        // the archive.
        const { expires_at, ...key } = part.item
        return `${this.#nextInList("api_keys")}${JSON.stringify(expires_at === null ? key : part.item)}`
      }
      default:
        return `${this.#nextInList(part.list)}${JSON.stringify(part.item)}`
    }
  }

  end(): string {
    return `${this.#endPrompt()}${this.#openLists(workspaceLists.length)}`
  }

  /** Returns the text before the next item of a list of the workspace. */
  #nextInList(list: WorkspaceList): string {
    const text = `${this.#endPrompt()}${this.#openLists(workspaceLists.indexOf(list))}`
    const comma = this.#isListEmpty ? "" : ","
    this.#isListEmpty = false
    return `${text}${comma}\n`
  }

  /**
   * Closes the current list and opens the lists up to the list at `index`. If `index` is past the last list, closes the
   * archive.
   */
  #openLists(index: number): string {
    let text = ""
    for (; this.#list < index; this.#list++) {
      if (this.#list !== -1) text += this.#isListEmpty ? "]" : "\n]"
      const next = workspaceLists[this.#list + 1]
      text += next === undefined ? "}\n" : `,\n"${next}":[`
      this.#isListEmpty = true
    }
    return text
  }

  /** Returns the text before the next item of a list of the current prompt. */
  #nextInPrompt(list: PromptList): string {
    const isSameList = this.#promptList === list
    const comma = this.#isPromptListEmpty ? "" : ","
    this.#promptList = list
    this.#isPromptListEmpty = false
    return isSameList ? comma : `],"versions":[`
  }

  /** Returns the text that ends the current prompt, if there is one. */
  #endPrompt(): string {
    const list = this.#promptList
    this.#promptList = undefined
    if (list === undefined) return ""
    return list === "fragments" ? `],"versions":[]}` : "]}"
  }
}
