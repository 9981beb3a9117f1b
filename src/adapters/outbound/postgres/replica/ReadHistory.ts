/** When something was last read, by the monotonic clock, in milliseconds. */
interface LastReads {
  /** The last read of a server that is not the one of `epoch`. */
  elsewhereAt: number
  /** The last read of any replica. */
  replicaAt: number
  /** The latest epoch of those reads. */
  epoch: number
}

const makeLastReads = (): LastReads => ({
  elsewhereAt: Number.NEGATIVE_INFINITY,
  replicaAt: Number.NEGATIVE_INFINITY,
  epoch: -1
})

/** Maximum number of ids that are remembered separately. Above it, ids share their times. */
const maxIds = 50_000

/**
 * Remembers when each workspace, and each key of which only the hash is known, was last read from which server, so that
 * reads that move to another server never show an older state. A replica that is connected to again counts as
 * another server, of a later `epoch`, because it may have gone back.
 */
export class ReadHistory {
  #byId = new Map<string, LastReads>()
  /** The last reads of all ids that are not in the map. */
  readonly #others = makeLastReads()
  #forgottenBefore = Number.NEGATIVE_INFINITY

  /** Records that a read of the primary ended. */
  recordPrimary(id: string, at: number): void {
    const reads = this.#edit(id)
    reads.elsewhereAt = Math.max(reads.elsewhereAt, at)
  }

  /** Records that a read of a replica ended. */
  recordReplica(id: string, at: number, epoch: number): void {
    const reads = this.#edit(id)
    if (epoch > reads.epoch) {
      reads.elsewhereAt = Math.max(reads.elsewhereAt, reads.replicaAt)
      reads.epoch = epoch
    }
    if (epoch < reads.epoch) reads.elsewhereAt = Math.max(reads.elsewhereAt, at)
    reads.replicaAt = Math.max(reads.replicaAt, at)
  }

  /** Returns when an id was last read from a server that is not the replica of an epoch. */
  lastElsewhere(id: string, epoch: number): number {
    const reads = this.#find(id)
    return reads.epoch === epoch ? reads.elsewhereAt : Math.max(reads.elsewhereAt, reads.replicaAt)
  }

  /** Returns when an id was last read from a replica. */
  lastOnReplica(id: string): number {
    return this.#find(id).replicaAt
  }

  /** Frees memory: no reads before `at` matter any more. */
  forgetBefore(at: number): void {
    if (this.#byId.size < maxIds / 2 || at <= this.#forgottenBefore) return
    this.#forgottenBefore = at
    for (const [id, { elsewhereAt, replicaAt }] of this.#byId)
      if (elsewhereAt < at && replicaAt < at) this.#byId.delete(id)
  }

  #find(id: string): LastReads {
    return this.#byId.get(id) ?? this.#others
  }

  #edit(id: string): LastReads {
    const reads = this.#byId.get(id)
    if (reads !== undefined) return reads
    if (this.#byId.size >= maxIds) this.#mergeAll()
    const added = { ...this.#others }
    this.#byId.set(id, added)
    return added
  }

  #mergeAll(): void {
    const merged = this.#others
    for (const { elsewhereAt, replicaAt, epoch } of this.#byId.values()) {
      if (epoch !== merged.epoch) {
        merged.elsewhereAt = Math.max(merged.elsewhereAt, epoch > merged.epoch ? merged.replicaAt : replicaAt)
        merged.epoch = Math.max(merged.epoch, epoch)
      }
      merged.elsewhereAt = Math.max(merged.elsewhereAt, elsewhereAt)
      merged.replicaAt = Math.max(merged.replicaAt, replicaAt)
    }
    this.#byId = new Map()
  }
}
