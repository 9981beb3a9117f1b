/// <reference lib="esnext.disposable" preserve="true" />
import type { CacheResult } from "./Cache.ts"
import type { CacheLimits } from "./Options.ts"
import { getStatus, isOutage } from "./Outages.ts"
import { maxPageSize, type NormalSelection, toPageTarget } from "./Selection.ts"
import { isResolvedPage, type UnknownJson } from "./transport/Envelopes.ts"
import {
  type CallSettings,
  getElapsed,
  readClocks,
  sleep,
  subtract,
  toTimeoutError
} from "./transport/Limits.ts"
import type { ConfirmedText, ResponseInfo, Transport } from "./transport/Transport.ts"

/** Options of `live`. */
export interface LiveOptions {
  /**
   * Called after the text of a prompt has changed, or another prompt has joined the selection. Receives the selected
   * name or id or, with a filter, the prompt's name. An error that the function throws becomes an unhandled rejection.
   */
  readonly onChange?: ((prompt: string) => void) | undefined
}

/** Prompts that `live` keeps current in memory. */
export interface Live {
  /** Ends the requests. After `close`, calls read these prompts like any other prompts. */
  close(): void
  [Symbol.asyncDispose](): Promise<void>
}

/** The parts of a client that `LivePrompts` needs. */
export interface LiveSettings extends LiveOptions {
  readonly transport: Transport
  readonly limits: CacheLimits
  /** The limits of requests that do not wait for changes. */
  readonly call: CallSettings
  /** The client's live prompts that are not closed. If `lives` is undefined, the prompts are loaded once. */
  readonly lives?: Set<LivePrompts>
}

/** A page of the selection. One request at a time keeps the page current. */
interface LivePage {
  readonly controller: AbortController
  /** Resolves after the first request. If this request failed, resolves to the error. */
  loaded?: Promise<unknown>
  /** The prompts, by id and by name. */
  entries: ReadonlyMap<string, ConfirmedText>
  /** The response that last confirmed the texts. */
  info?: ResponseInfo
  /** True while a request waits for a change. */
  isWaiting?: boolean
}

/** The maximum time from the end of a wait to the end of the waiting request, in milliseconds. */
const marginMs = 10_000

/** Loads the prompts of a selection. With `lives`, keeps them current (states, events, invariants: docs/client.md). */
export class LivePrompts implements Live {
  readonly #selection: NormalSelection
  readonly #settings: LiveSettings
  #size = maxPageSize
  /** True once the caller of `live` no longer waits. */
  #isLoaded = false
  readonly #pages: Array<LivePage> = []
  /** The last text of each prompt, by name. */
  readonly texts = new Map<string, ConfirmedText>()
  /** The distinct totals that the responses have reported. A total is a number of selected prompts. */
  readonly totals = new Set<number>()

  constructor(selection: NormalSelection, settings: LiveSettings) {
    this.#selection = selection
    this.#settings = settings
    settings.lives?.add(this)
  }

  /** Loads all pages. Rejects if a request fails. With `lives`, resolves even if the service is not available. */
  async load(): Promise<void> {
    this.#resize(1)
    // The response for a page can add further pages to the list.
    for (const page of this.#pages) {
      const error = await page.loaded
      if (error && !(this.#settings.lives && isOutage(error))) throw error
    }
    this.#isLoaded = true
  }

  close(): void {
    this.#settings.lives?.delete(this)
    this.#truncate(0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }

  /** Returns the text of the prompt with this name or id, or `undefined` if the text does not exist or is too old. */
  find(prompt: string): CacheResult | undefined {
    const { transport, limits } = this.#settings
    // A prompt can be on two pages for a moment. The earlier page has the newer text, because an edit moves the prompt
    // to an earlier page.
    for (const { entries, info, isWaiting } of this.#pages) {
      const entry = entries.get(prompt)
      if (!entry || info?.rejections !== transport.key.rejections) continue
      const age = getElapsed(info.confirmedAt)
      if (age >= limits.ttl + limits.maxStale) continue
      const source = age >= limits.ttl ? "stale" : isWaiting ? "live" : "cached"
      return { text: entry.text, info: { ...info, etag: undefined, version: entry.info.version }, source }
    }
    return undefined
  }

  /** Ends all pages after the first `count`. */
  #truncate(count: number): void {
    for (const { controller } of this.#pages.splice(count)) controller.abort()
  }

  /** Changes the number of pages to the number that `total` prompts need. */
  #resize(total: number): void {
    const count = Math.ceil((this.#selection.names?.length ?? Math.max(total, 1)) / this.#size)
    this.#truncate(count)
    while (this.#pages.length < count) {
      const page: LivePage = { controller: new AbortController(), entries: new Map() }
      const number = this.#pages.push(page)
      page.loaded = new Promise((resolve) => this.#keepCurrent(page, number, resolve).then(resolve, resolve))
    }
  }

  /**
   * Sends requests for a page until its controller is aborted. Without `lives`, sends one request. Each request after
   * the first asks the service to wait for a change. While the texts are stale, the service waits at most one second
   * before it confirms the texts.
   */
  async #keepCurrent(page: LivePage, number: number, onResponse: (error?: unknown) => void): Promise<void> {
    const { transport, limits, call, lives } = this.#settings
    const { signal } = page.controller
    // The wait is less than `ttl`, so that the texts stay current.
    const wait = Math.min(Math.floor(limits.ttl / 1_200) || 1, 50)
    // Many clients can lose their requests at the same time. Random pauses spread the next requests over a whole wait.
    const pauseAtRandom = () => wait * 1_000 * Math.random()
    let isPolling = false
    let error: unknown
    for (;;) {
      const last = page.info
      const seconds = last && getElapsed(last.confirmedAt) >= limits.ttl ? 1 : wait
      const settings = last
        ? { timeout: seconds * 1_000 + marginMs, maxRetries: 0, headers: { prefer: `wait=${seconds}` } }
        : { ...call, maxRetries: error ? 0 : call.maxRetries }
      const sentAt = readClocks()
      let pause = 0
      page.isWaiting = last !== undefined
      try {
        const target = toPageTarget(this.#selection, number, this.#size)
        const isBackground = this.#isLoaded || (last ?? error) !== undefined
        const previous = last && { text: "", info: last }
        const request = { ...settings, signal, isBackground }
        const { text, info } = await transport.send(target, request, isResolvedPage, previous)
        signal.throwIfAborted()
        // Timers stop while the machine is suspended, so the response can arrive after the timeout.
        if (getElapsed(sentAt) > settings.timeout) throw toTimeoutError(settings.timeout)
        if (text) this.#update(page, JSON.parse(text), info)
        page.info = last ? { ...info, confirmedAt: subtract(readClocks(), info.age) } : info
        error = undefined
        if (info.headers.get("preference-applied")) isPolling = false
        else if (last && last.etag === info.etag) {
          pause = isPolling ? Math.max(limits.ttl, 1_000) : pauseAtRandom()
          isPolling = true
        }
      } catch (cause) {
        if (signal.aborted) return
        // The response or the request is too large, so a smaller page can succeed.
        if ([414, 422, 431].includes(getStatus(cause)!) && this.#size > 1) {
          this.#size = Math.ceil(this.#size / 2)
          this.#truncate(0)
          return await this.load()
        }
        pause = pauseAtRandom() + (error ? wait * 1_000 : 0)
        error = cause
      }
      page.isWaiting &&= !pause
      onResponse(error)
      if (!lives) return
      if (pause) await sleep(pause, signal, { isBackground: true })
    }
  }

  /**
   * Stores each prompt of a page as its own response body, reports the changes, and adapts the number of pages. The
   * bodies have no ETag, because the ETag of the page is not valid for a single prompt.
   */
  #update(page: LivePage, { data, meta }: UnknownJson, info: ResponseInfo): void {
    const entries = new Map<string, ConfirmedText>()
    for (const [index, prompt] of data.entries()) {
      const { name, version } = meta.prompts[index]
      const entry = { text: JSON.stringify({ data: prompt }), info: { ...info, etag: undefined, version } }
      entries.set(prompt.id, entry).set(name, entry)
      const last = this.texts.get(name)
      this.texts.set(name, entry)
      if (last?.text !== entry.text && (last || page.info))
        Promise.resolve(name).then(this.#settings.onChange)
    }
    page.entries = entries
    // A prompt that moves can be on no page for a moment, so the client does not delete a missing name immediately.
    if (this.texts.size > 2 * maxPageSize * this.#pages.length) {
      for (const name of this.texts.keys())
        if (!this.#pages.some(({ entries }) => entries.has(name))) this.texts.delete(name)
    }
    this.totals.add(meta.total)
    this.#resize(meta.total)
  }
}
