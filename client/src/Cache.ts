import { InvalidResponseError, PromptApiError, TimeoutError } from "./Errors.ts"
import { aborted, type Call, now, withLimits } from "./Limits.ts"
import type { Source } from "./Resources.ts"

/** How long results are kept. The defaults are what the service allows any cache (SPEC.md section 8). */
export interface CacheOptions {
  /** How long a result is served without asking again, in milliseconds; 30,000 unless told. */
  readonly ttl?: number | undefined
  /**
   * How long past `ttl` a result is still served, in milliseconds; 300,000 unless told. Each such read is answered at
   * once, and has the service asked in the background; while the service is away, it goes on like this until then.
   */
  readonly maxStale?: number | undefined
  /** How many results are kept, 1,000 unless told; the one that was not read for longest goes first. */
  readonly maxEntries?: number | undefined
}

/** Reads a target from the service; `undefined` when what `etag` names is still current. */
export type Send = (call: Call, etag?: string | null) => Promise<Body | undefined>

/** The body of a successful answer. */
export interface Body {
  readonly text: string
  readonly etag: string | null
}

interface Entry extends Body {
  /** When the read began that last confirmed it. */
  readonly at: number
}

/** A read that is under way, and how many wait for it. */
interface InFlightRead {
  readonly body: Promise<Body>
  readonly controller: AbortController
  waiting: number
}

const statusOf = (error: unknown): number | undefined =>
  error instanceof PromptApiError || error instanceof InvalidResponseError ? error.status : undefined

/**
 * Keeps the bodies of successful answers by their target: text, so that no two callers share an object. An answer of 404
 * drops its entry, one of 401 or 403 drops all, as it is about the key; any other failure leaves the entry as it is.
 */
export class Cache {
  readonly #options: Readonly<Record<keyof CacheOptions, number>>
  readonly #defaults: Call
  #entries = new Map<string, Entry>()
  readonly #flights = new Map<string, InFlightRead>()

  /** `defaults` are the limits of the reads that no caller waits for. */
  constructor(options: Readonly<Record<keyof CacheOptions, number>>, defaults: Call) {
    this.#options = options
    this.#defaults = defaults
  }

  /** Reads a target, by the entry's age: from the cache, from it while asking again, or from the service. */
  async read(
    target: string,
    call: Call,
    send: Send
  ): Promise<{ readonly text: string; readonly source: Source }> {
    const { ttl, maxStale } = this.#options
    const entry = this.#entries.get(target)
    if (entry === undefined || call.signal?.aborted) return this.#join(target, call, send)
    this.#put(this.#entries, target, entry)
    const age = now() - entry.at
    if (age < ttl) return { text: entry.text, source: "cached" }
    if (age >= ttl + maxStale) return this.#join(target, call, send)
    // Nobody waits for it, so nobody's leaving can end it.
    this.#flight(target, this.#defaults, send).waiting = Number.POSITIVE_INFINITY
    return { text: entry.text, source: "stale" }
  }

  /** Waits for a read with others who want the same. Whoever leaves goes alone; the last to leave ends the read. */
  #join(target: string, call: Call, send: Send) {
    return withLimits(call, async (signal) => {
      for (;;) {
        const flight = this.#flight(target, call, send)
        flight.waiting++
        try {
          const { text } = await Promise.race([flight.body, aborted(signal)])
          return { text, source: "fresh" as const }
        } catch (error) {
          // The read's time was up, but it began before this call did, whose own time is not.
          if (signal.aborted || !(error instanceof TimeoutError)) throw error
        } finally {
          if (--flight.waiting === 0) flight.controller.abort()
        }
      }
    })
  }

  /** The read of a target that is under way, or a new one. Calls that would wait differently read apart. */
  #flight(target: string, call: Call, send: Send): InFlightRead {
    const name = `${target} ${call.timeout} ${call.maxRetries}`
    const running = this.#flights.get(name)
    if (running !== undefined) return running
    const controller = new AbortController()
    const flight = {
      body: this.#fetch(target, { ...call, signal: controller.signal }, send),
      controller,
      waiting: 0
    }
    const land = () => {
      if (this.#flights.get(name) === flight) this.#flights.delete(name)
    }
    this.#flights.set(name, flight)
    controller.signal.addEventListener("abort", land)
    flight.body.then(land, land)
    return flight
  }

  async #fetch(target: string, call: Call, send: Send): Promise<Body> {
    // Once the entries are dropped, what was read before goes into the map that was dropped too.
    const entries = this.#entries
    const known = entries.get(target)
    const at = now()
    try {
      const { text, etag } = (await send(call, known?.etag)) ?? known!
      if ((entries.get(target)?.at ?? at) <= at) this.#put(entries, target, { text, etag, at })
      return { text, etag }
    } catch (error) {
      const status = statusOf(error)
      if (status === 404) entries.delete(target)
      if (status === 401 || status === 403) this.#entries = new Map()
      throw error
    }
  }

  /** Puts an entry last, where the one that goes next is first. */
  #put(entries: Map<string, Entry>, target: string, entry: Entry): void {
    entries.delete(target)
    entries.set(target, entry)
    if (entries.size > this.#options.maxEntries) entries.delete(entries.keys().next().value!)
  }
}
