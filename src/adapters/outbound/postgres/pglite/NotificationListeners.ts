import type { Notification } from "./WireProtocol.ts"

/** Receives the notifications of one channel. */
export interface NotificationListener {
  readonly onNotification: (payload: string) => void
  /** Notifications may have been lost: the database failed and was reopened, or a client ended `LISTEN`. */
  readonly onGap: () => void
}

/** The listeners of each channel. They are called from microtasks, so an exception in one never ends a query. */
export class NotificationListeners {
  readonly #byChannel = new Map<string, Set<NotificationListener>>()

  /** The channels that have ever had a listener: the session stays subscribed to them. */
  get channels(): ReadonlyArray<string> {
    return [...this.#byChannel.keys()]
  }

  /** Adds a listener and returns the function that removes it. */
  add(channel: string, listener: NotificationListener): () => void {
    const listeners = this.#byChannel.get(channel) ?? new Set()
    this.#byChannel.set(channel, listeners.add(listener))
    return () => {
      listeners.delete(listener)
    }
  }

  /** Passes a notification to the listeners of its channel. */
  dispatch({ channel, payload }: Notification): void {
    for (const listener of this.#byChannel.get(channel) ?? [])
      queueMicrotask(() => listener.onNotification(payload))
  }

  /** Notifies every listener that notifications may have been lost. */
  reportGap(): void {
    for (const listeners of this.#byChannel.values())
      for (const listener of listeners) queueMicrotask(() => listener.onGap())
  }
}
