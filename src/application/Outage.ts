import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { KeyHash } from "../domain/ApiKey.ts"
import { elapsedBetween, type Instant } from "../domain/Instant.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import { readInstant } from "./Clocks.ts"
import { type CacheEntry, wasCurrentAt } from "./Freshness.ts"
import { OutageMarks } from "./OutageMarks.ts"
import { ChangeFeed, type LastContact } from "./ports/ChangeFeed.ts"
import { Observations } from "./ports/Observations.ts"
import { Readiness } from "./ports/Readiness.ts"

/** How long values are served after the last contact by default, in milliseconds (specification 8). */
export const defaultOutageMaxAge = 300_000

/** How often the state of the outage is checked, in milliseconds. */
const checkIntervalMs = 100
/** How long an outage lasts before the first probe of the database, and the time between two, in milliseconds. */
const probeIntervalMs = 250
/** A probe without an outcome for this long means that the database does not respond, in milliseconds. */
const probeTimeoutMs = 500
/** How often a failed read checks whether contact is lost, and for how long, in milliseconds. */
const verdictIntervalMs = 20
const verdictTimeoutMs = 3_500
/** A loss of contact is a race with reads in flight for this long, in milliseconds. */
const raceMs = 1_000
/** How long the report of a change may take after a read has shown it, in milliseconds. */
const reportDelayMs = 1_000

/** Formats the name of a revision of a workspace. */
const formatRevision = (workspace: WorkspaceId, revision: number): string => `${workspace} ${revision}`

/** What an outage depends on. */
export interface OutageOptions {
  readonly feed: ChangeFeed["Service"]
  readonly observations: Observations["Service"]
  /** How long after the last contact values are served, in milliseconds. */
  readonly maxAgeMs: number
  /** Reads the clocks. */
  readonly now?: () => Instant
}

/**
 * Decides whether values that were current when contact with the database was lost may be served:
 *
 * 1. The change feed is down, and the database does not respond, or has not since contact was lost.
 * 2. At most the maximum age has passed since the last contact: since the last heartbeat that arrived was sent, not
 *    since the value was cached. The age is the same for all values, and counts suspensions and clock changes.
 * 3. No change of the value's workspace was reported before contact was lost, and no read has shown a change or a
 *    refusal of the key since the last contact. Reads report what they show also while the change feed is up: the
 *    feed notices a silent loss only when its heartbeats are missing.
 *
 * While the change feed is up, nothing is served. A feed that comes up again has other revisions, so that no value
 * from before matches.
 */
export class OutagePolicy {
  readonly #feed: ChangeFeed["Service"]
  readonly #observations: Observations["Service"]
  readonly #maxAgeMs: number
  readonly #now: () => Instant
  /** Whether the database has responded since a contact that was lost. */
  #latest: { readonly contactAt: Instant["monotonic"]; readonly hasResponded: boolean } | undefined
  /** When the database last responded during an outage. */
  #respondedAt: Instant["monotonic"] | undefined
  /** When the current outage was noticed. */
  #downSince: Instant | undefined
  /** What reads have shown since the last contact: refused keys, and revisions of workspaces that are out of date. */
  readonly #marks = new OutageMarks()
  /** When the probe that has no outcome yet began. */
  #probingSince: Instant | undefined
  readonly #waiting = new Set<() => void>()
  #phase: "contact" | "serving" | "expired" = "contact"

  constructor({ feed, observations, maxAgeMs, now = readInstant }: OutageOptions) {
    this.#feed = feed
    this.#observations = observations
    this.#maxAgeMs = maxAgeMs
    this.#now = now
  }

  /** Returns true while the change feed is up. */
  hasContact(): boolean {
    return this.#feed.revision() !== undefined
  }

  /** Returns true while values from before the outage are served without asking the database first. */
  isServing(): boolean {
    const contact = this.#findContact()
    if (contact === undefined) return false
    return this.#latest?.contactAt === contact.at.monotonic
      ? !this.#latest.hasResponded
      : contact.isDatabaseSilent
  }

  /** Returns true if a value is the last one known and may be served if the database does not respond. */
  isLastKnown(entry: CacheEntry<unknown>): boolean {
    const contact = this.#feed.lastContact()
    return (
      contact !== undefined &&
      wasCurrentAt(contact, entry) &&
      !this.#marks.has(formatRevision(entry.workspace, entry.revision))
    )
  }

  /**
   * Returns true if the database may have refused a key since a time, by the monotonic clock: a value that the key
   * began to read at that time is not served any more.
   */
  isRefused(key: KeyHash, since: Instant["monotonic"]): boolean {
    return this.#marks.has(key, since)
  }

  /**
   * Returns the age of a value in milliseconds, counted from the last contact. Returns `undefined` if it must not be
   * served: the feed is up again, too much time has passed, or its workspace has changed. Call this right before the
   * value is sent, because any wait may have been a suspension.
   */
  findAge(entry: CacheEntry<unknown>): number | undefined {
    const contact = this.#findContact()
    return contact !== undefined && this.isLastKnown(entry) ? this.#ageOf(contact) : undefined
  }

  /** Counts a value of this age, in milliseconds, that was served. */
  recordResponse(ageMs: number): void {
    this.#observations.recordOutageResponse(ageMs / 1_000)
  }

  /** Reports that the database has responded to a read, which matters only during an outage. */
  reportResponse(): void {
    this.#respondedAt = this.#now().monotonic
    this.#recordOutcome(true)
  }

  /**
   * Reports that the database did not respond to something that was sent at `sentAt`, by the monotonic clock. Has no
   * effect if the database has responded to something else since.
   */
  reportSilence(sentAt: Instant["monotonic"]): void {
    if (this.#respondedAt === undefined || this.#respondedAt < sentAt) this.#recordOutcome(false)
  }

  /** Reports that a read has shown that a value is out of date: no value of that revision is served any more. */
  reportChange({ workspace, revision }: CacheEntry<unknown>): void {
    this.#mark(formatRevision(workspace, revision))
  }

  /**
   * Reports that the database refuses a key: the values that the key has read are not served to it any more. With a
   * workspace, the database refuses all keys of that workspace.
   */
  reportRefusal(key: KeyHash, workspace?: WorkspaceId): void {
    this.#mark(key)
    if (workspace !== undefined) this.#markWorkspace(workspace)
  }

  /**
   * Reports a read of a workspace during an outage that cannot be compared with an older value. The workspace counts
   * as changed, unless the read may have started before contact was lost.
   */
  reportRead(workspace: WorkspaceId): void {
    this.reportResponse()
    const since = this.#downSince
    if (since !== undefined && elapsedBetween(since, this.#now()) >= raceMs) this.#markWorkspace(workspace)
  }

  /** Succeeds as soon as values from before the outage are served. */
  readonly begins: Effect.Effect<void> = Effect.callback((resume) => {
    const onBegin = () => resume(Effect.void)
    this.#waiting.add(onBegin)
    return Effect.sync(() => this.#waiting.delete(onBegin))
  })

  /**
   * Runs after a read that started at `startedAt`, by the monotonic clock, failed because the database did not respond.
   * Succeeds with true if contact is lost: at once if the feed is down, otherwise when it goes down. Succeeds with false
   * once the feed proves to have contact.
   */
  readonly isContactLost = (startedAt: Instant["monotonic"]): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      const failedAt = this.#now()
      const judge: Effect.Effect<boolean> = Effect.suspend(() => {
        if (!this.hasContact()) {
          this.reportSilence(startedAt)
          return Effect.succeed(this.#findContact() !== undefined)
        }
        const contact = this.#feed.lastContact()
        const hasContact = contact === undefined || contact.at.monotonic >= failedAt.monotonic
        if (hasContact || elapsedBetween(failedAt, this.#now()) > verdictTimeoutMs)
          return Effect.succeed(false)
        return Effect.delay(judge, verdictIntervalMs)
      })
      return judge
    })

  /** Checks the state: logs when the outage begins and ends, wakes the reads that wait for it, sets the gauge. */
  readonly check: Effect.Effect<void> = Effect.suspend(() => {
    const contact = this.#feed.lastContact()
    const isUp = this.hasContact()
    const age = contact === undefined || isUp ? 0 : this.#ageOf(contact)
    const msLeft = contact === undefined ? 0 : Math.max(0, this.#maxAgeMs - age)
    this.#observations.setOutageSecondsLeft(msLeft / 1_000)
    // Every change that was committed before the last contact has been reported, so its revision protects from it.
    if (contact !== undefined) this.#marks.deleteBefore(contact.at.monotonic - reportDelayMs)
    if (isUp) {
      this.#downSince = undefined
      this.#latest = undefined
      this.#respondedAt = undefined
      const wasServing = this.#phase === "serving"
      this.#phase = "contact"
      return wasServing ? Effect.logInfo("Database restored; responses are current again") : Effect.void
    }
    this.#downSince ??= this.#now()
    const since = this.#probingSince
    if (since !== undefined && elapsedBetween(since, this.#now()) > probeTimeoutMs)
      this.reportSilence(since.monotonic)
    if (this.isServing()) {
      for (const resume of this.#waiting) resume()
      if (this.#phase !== "contact") return Effect.void
      this.#phase = "serving"
      return Effect.logWarning(
        `Database unreachable; responses that were current at the last contact are served for ${Math.round(msLeft / 1_000)} s`
      )
    }
    if (this.#phase !== "serving" || msLeft > 0) return Effect.void
    this.#phase = "expired"
    return Effect.logWarning("Database unreachable for too long; known responses are not served any more")
  })

  /** Asks the database whether it responds, if there is an outage. */
  readonly probe = (check: Readiness["Service"]["check"]): Effect.Effect<void> =>
    Effect.suspend(() => (this.#findContact() === undefined ? Effect.void : this.#probe(check)))

  #probe(check: Readiness["Service"]["check"]): Effect.Effect<void> {
    const since = this.#now()
    this.#probingSince = since
    return Effect.matchCause(check, {
      onSuccess: () => {
        this.#probingSince = undefined
        this.reportResponse()
      },
      onFailure: () => {
        this.#probingSince = undefined
        this.reportSilence(since.monotonic)
      }
    })
  }

  /** Returns the last contact if the feed is down and values from before may still be served. */
  #findContact(): LastContact | undefined {
    if (this.hasContact()) return undefined
    const contact = this.#feed.lastContact()
    return contact !== undefined && this.#ageOf(contact) <= this.#maxAgeMs ? contact : undefined
  }

  #recordOutcome(hasResponded: boolean): void {
    const contact = this.#findContact()
    this.#latest = contact === undefined ? undefined : { contactAt: contact.at.monotonic, hasResponded }
  }

  #mark(name: string): void {
    this.#marks.add(name, this.#now().monotonic)
  }

  /** Marks all values of a workspace that were current at the last contact. */
  #markWorkspace(workspace: WorkspaceId): void {
    const contact = this.#feed.lastContact()
    if (contact !== undefined) this.#mark(formatRevision(workspace, contact.revisionOf(workspace)))
  }

  #ageOf({ at }: LastContact): number {
    return elapsedBetween(at, this.#now())
  }
}

/** The policy of this service for outages of its database; `undefined` if nothing is served in an outage. */
export const Outage = Context.Reference<OutagePolicy | undefined>("prompt-retrieval/Outage", {
  defaultValue: () => undefined
})

/** Sleeps without keeping the process alive: the host of `createPromptApi` may have nothing else to do. */
const sleepInBackground = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds).unref()
    return Effect.sync(() => clearTimeout(timer))
  })

/** The policy that serves values for at most `maxAgeMs` after the last contact; 0 turns it off. */
export const layer = (maxAgeMs: number): Layer.Layer<never, never, ChangeFeed | Observations | Readiness> =>
  maxAgeMs === 0
    ? Layer.empty
    : Layer.effect(
        Outage,
        Effect.gen(function* () {
          const readiness = yield* Readiness
          const outage = new OutagePolicy({
            feed: yield* ChangeFeed,
            observations: yield* Observations,
            maxAgeMs
          })
          const repeat = (effect: Effect.Effect<void>, intervalMs: number) =>
            Effect.andThen(sleepInBackground(intervalMs), effect).pipe(Effect.forever, Effect.forkScoped)
          yield* outage.check
          yield* repeat(outage.check, checkIntervalMs)
          yield* repeat(outage.probe(readiness.check), probeIntervalMs)
          return outage
        })
      )
