import { LRUCache } from "lru-cache"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

/** An entry of `FairLru`: the workspace to which it belongs, and its size in any unit. */
export interface FairEntry {
  readonly workspace: WorkspaceId
  readonly size: number
}

interface Share {
  size: number
  /** The cache keys of the workspace's entries, the least recently used first. */
  readonly keys: Set<string>
}

/**
 * A bounded map whose entries belong to workspaces. When the map is full, a new entry evicts the least recently used
 * entries. If the workspace of the new entry would exceed an equal share of the map, its own entries are evicted first.
 * So a workspace with many entries cannot evict the entries of other workspaces.
 */
export class FairLru<Entry extends FairEntry> {
  readonly #maxSize: number
  readonly #maxEntrySize: number
  readonly #entries: LRUCache<string, Entry>
  readonly #shares = new Map<WorkspaceId, Share>()

  /** The sizes of all entries together are at most `maxSize`. An entry larger than `maxEntrySize` is not stored. */
  constructor(maxSize: number, maxEntrySize: number) {
    this.#maxSize = maxSize
    this.#maxEntrySize = maxEntrySize
    this.#entries = new LRUCache<string, Entry>({
      maxSize,
      dispose: (entry, key) => this.#removeFromShare(entry, key)
    })
  }

  /** Returns an entry, which becomes the most recently used. */
  get(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry !== undefined) {
      const keys = this.#shares.get(entry.workspace)?.keys
      keys?.delete(key)
      keys?.add(key)
    }
    return entry
  }

  /** Returns an entry without changing the order of eviction. */
  peek(key: string): Entry | undefined {
    return this.#entries.peek(key)
  }

  set(key: string, entry: Entry): void {
    this.#entries.delete(key)
    if (entry.size > this.#maxEntrySize) return
    this.#makeRoom(entry)
    const share = this.#shares.get(entry.workspace) ?? { size: 0, keys: new Set() }
    this.#shares.set(entry.workspace, share)
    share.size += entry.size
    share.keys.add(key)
    this.#entries.set(key, entry, { size: entry.size })
  }

  /** Evicts entries of a workspace while a new entry does not fit and would bring it above its share. */
  #makeRoom({ workspace, size }: Entry): void {
    const share = this.#shares.get(workspace)
    if (share === undefined) return
    const fairSize = this.#maxSize / this.#shares.size
    for (const key of share.keys) {
      if (this.#entries.calculatedSize + size <= this.#maxSize || share.size + size <= fairSize) return
      this.#entries.delete(key)
    }
  }

  #removeFromShare({ workspace, size }: Entry, key: string): void {
    const share = this.#shares.get(workspace)
    if (share === undefined) return
    share.size -= size
    share.keys.delete(key)
    if (share.keys.size === 0) this.#shares.delete(workspace)
  }
}
