import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fence, FenceQueue } from "./FenceQueue.ts"
import { Replica, type ReplicaServer, type ReplicaSession } from "./Replica.ts"
import type { ReplicaBudget } from "./ReplicaBudget.ts"
import type { Lineage } from "./ServerState.ts"

/** The replica that runs reads. */
export interface ReplicaInUse {
  readonly fences: Pick<FenceQueue, "passed">
  readonly session: ReplicaSession
}

/**
 * The replicas of a process, of which it uses one at a time: two standbys show different states, and reads that move
 * between them must wait for fences. Each process prefers the replicas in another order, so that several processes share
 * them.
 */
export class ReplicaSet {
  readonly #replicas: ReadonlyArray<Replica>
  #active: Replica | undefined
  /** The replica that was in use before, until its connections are closed. */
  #closing: Replica | undefined

  constructor(servers: ReadonlyArray<ReplicaServer>, budget: ReplicaBudget) {
    const first = Math.floor(Math.random() * servers.length)
    const ordered = [...servers.slice(first), ...servers.slice(0, first)]
    this.#replicas = ordered.map((server) => new Replica(server, budget, () => this.#choose()))
  }

  /**
   * Returns the replica in use and its session; `undefined` if none can be used.
   *
   * @param isLastResort whether a replica that does not respond in time is better than none
   */
  find(isLastResort: boolean): ReplicaInUse | undefined {
    const replica = this.#active
    const session = isLastResort ? replica?.session : replica?.usable
    return replica === undefined || session === undefined ? undefined : { fences: replica.fences, session }
  }

  addFence(fence: Fence, primary: Lineage): void {
    for (const replica of this.#replicas) replica.addFence(fence, primary)
  }

  /** Connects to all replicas until the scope closes. */
  get run(): Effect.Effect<void, never, Scope.Scope> {
    return Effect.forEach(this.#replicas, (replica) => Effect.forkScoped(replica.run), { discard: true })
  }

  /**
   * Stays with the replica in use while it is usable, unless it is far behind and another one is not. Before another one is
   * used, the connections of the former are closed, so that the number of connections is bounded.
   */
  #choose(): void {
    if (this.#closing?.session === undefined) this.#closing = undefined
    const current = this.#active
    if (current?.usable !== undefined && !current.isFarBehind) return
    const usable = this.#replicas.filter((replica) => replica.usable !== undefined)
    const next = usable.find((replica) => !replica.isFarBehind) ?? usable[0]
    if (next === undefined || next === current) return
    if (current?.session !== undefined) {
      if (current.usable !== undefined && next.isFarBehind) return
      this.#active = undefined
      this.#closing = current
      current.retire()
    }
    if (this.#closing?.session === undefined) this.#active = next
  }
}
