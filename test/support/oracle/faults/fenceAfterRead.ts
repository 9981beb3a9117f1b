import { serveWithFault } from "./plantFault.ts"

// The position of a replica is compared after the read, outside the snapshot of the read: what the replica has replayed
// meanwhile counts as read. While the replica lags, its reads take long, so that it replays a change meanwhile.
await serveWithFault({
  file: "adapters/outbound/postgres/replica/ReadRouter.ts",
  replacements: {
    "const { passed } = replica.fences":
      "const passed = new Proxy(replica.fences, { get: ({ passed }, name) => Reflect.get(passed, name) }) as never",
    'if (!this.#hasPassed(scope.ids, passed, epoch)) return Effect.succeed({ _tag: "Fenced" })': "",
    "this.#hasPassed(workspaces, passed, epoch)":
      "this.#hasPassed([...scope.ids, ...workspaces], passed, epoch)",
    "Effect.matchCause(session[pool](statement), {": `Effect.matchCause(
      Effect.tap(session[pool](statement), () =>
        Effect.sleep(replica.fences.next === undefined ? 0 : 1_000)
      ), {`
  }
})
