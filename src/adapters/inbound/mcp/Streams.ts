import * as Effect from "effect/Effect"
import { Admission, type AdmittedCaller } from "../../../application/access/Admission.ts"
import { Lifecycle } from "../../../application/Lifecycle.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { ApiKeyId } from "../../../domain/ApiKey.ts"
import type { HttpResponse } from "../http/HttpMessage.ts"
import { toRpcError } from "./RpcErrors.ts"
import { encodeNotification, encodeResult, type RpcId, type RpcError } from "./JsonRpc.ts"
import { completeResult, metaKeys } from "./ProtocolVersions.ts"

/**
 * The interval at which a stream sends a comment and checks its key, in milliseconds. Some proxies end a response after
 * a time without data, such as 15 s.
 */
export const keepAliveMs = 5_000
/** The interval of the checks for a shutdown and for changes of workspaces, in milliseconds. */
const checkIntervalMs = 50
/** Maximum numbers of open streams in this process: for one key, and for all keys together. */
const maxStreams = { perKey: 16, perProcess: 1_000 } as const

const headers = [
  ...["content-type", "text/event-stream"],
  ...["cache-control", "no-store"],
  // Tells proxies not to buffer the response.
  ...["x-accel-buffering", "no"]
]

const toEvent = (message: string): string => `event: message\ndata: ${message}\n\n`

const promptsChanged = "notifications/prompts/list_changed"

export interface StreamMessages {
  /** The first message; undefined if there is none. */
  readonly opening: string | undefined
  /** The message that reports changes of the workspace; undefined if the client did not request this message. */
  readonly changed: string | undefined
  /** The last message when the service ends the stream; undefined if there is none. */
  readonly closing: string | undefined
}

/** The messages of the stream that a client opens with GET, in protocol versions up to 2025-11-25. */
export const notificationStream: StreamMessages = {
  opening: undefined,
  changed: encodeNotification(promptsChanged),
  closing: undefined
}

/** Makes the messages of a `subscriptions/listen` stream. Each message carries the id of the request. */
export const makeSubscription = (id: RpcId, wantsPrompts: boolean): StreamMessages => {
  const _meta = { [metaKeys.subscriptionId]: id }
  return {
    opening: encodeNotification("notifications/subscriptions/acknowledged", {
      _meta,
      notifications: wantsPrompts ? { promptsListChanged: true } : {}
    }),
    changed: wantsPrompts ? encodeNotification(promptsChanged, { _meta }) : undefined,
    closing: encodeResult(id, completeResult("stateless", {}, _meta))
  }
}

interface OpenStream {
  readonly caller: AdmittedCaller
  /** The latest known revision of the workspace; undefined if the change feed has been down since the stream opened. */
  revision: number | undefined
  /** Runs when the workspace has changed, or may have changed while the change feed was down. */
  readonly onChange: () => void
  readonly close: () => void
}

/**
 * Makes the function that opens a stream for a caller. The stream ends when the service drains, or when a check finds
 * that the caller's key no longer works or belongs to another workspace. The key is checked after a change in the
 * workspace, and every 5 s. Several changes within `checkIntervalMs` count as one. While the change feed is down,
 * streams receive no changes. When the feed comes up again, every stream behaves as if its workspace had changed.
 */
export const makeStreamOpener = Effect.gen(function* () {
  const admission = yield* Admission
  const lifecycle = yield* Lifecycle
  const feed = yield* ChangeFeed
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const streams = new Set<OpenStream>()
  /** Runs while streams are open. */
  let timer: NodeJS.Timeout | undefined

  const checkStream = (stream: OpenStream): void => {
    const revision = feed.revisionOf(stream.caller.workspaceId)
    if (lifecycle.phase() === "draining") stream.close()
    else if (revision !== undefined && revision !== stream.revision) {
      stream.revision = revision
      stream.onChange()
    }
  }

  /** Checks a stream every `checkIntervalMs`, until the returned function is called. */
  const addStream = (stream: OpenStream): (() => void) => {
    streams.add(stream)
    timer ??= setInterval(() => streams.forEach(checkStream), checkIntervalMs).unref()
    return () => {
      streams.delete(stream)
      if (streams.size > 0) return
      clearInterval(timer)
      timer = undefined
    }
  }

  const hasReachedLimit = (key: ApiKeyId): boolean =>
    streams.size >= maxStreams.perProcess ||
    [...streams].filter(({ caller }) => caller.keyId === key).length >= maxStreams.perKey

  return (
    caller: AdmittedCaller,
    token: string | undefined,
    { opening, changed, closing }: StreamMessages
  ): Effect.Effect<HttpResponse, RpcError> => {
    if (hasReachedLimit(caller.keyId) || lifecycle.phase() === "draining")
      return Effect.fail(toRpcError(Unavailable))
    return Effect.succeed({
      status: 200,
      headers,
      body: "",
      stream: ({ write, end }) => {
        const send = (message: string | undefined): void => {
          if (message !== undefined) write(toEvent(message))
        }
        const close = (): void => {
          send(closing)
          end()
        }
        /**
         * Runs `proceed` if the key still works for the workspace, or if the key cannot be checked. Otherwise ends the
         * stream.
         */
        const checkKey = (proceed: () => void): void => {
          run(
            Effect.match(admission.check(token), {
              onFailure: (error) => (error._tag === "Unavailable" ? proceed() : close()),
              onSuccess: (current) => (current.workspaceId === caller.workspaceId ? proceed() : close())
            })
          )
        }
        const removeStream = addStream({
          caller,
          revision: feed.revisionOf(caller.workspaceId),
          onChange: () => checkKey(() => send(changed)),
          close
        })
        const keepAlive = setInterval(() => checkKey(() => write(":\n\n")), keepAliveMs).unref()
        // Some proxies forward the headers only with the first bytes of the body.
        if (opening === undefined) write(":\n\n")
        send(opening)
        return () => {
          clearInterval(keepAlive)
          removeStream()
        }
      }
    })
  }
})
