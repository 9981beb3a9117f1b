import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { connectTo, makeResources, postgres } from "../support/database.ts"
import { startObserved } from "../support/observed.ts"
import type { Service } from "../support/service.ts"

const free = sample({ tier: "free" })
const solo = sample()

describe.skipIf(postgres.missing !== undefined)("the gate fires before the database is touched", () => {
  const resources = makeResources()
  let env: Record<string, string>
  let service: Service

  beforeAll(async () => {
    env = await resources.acquire(postgres.acquire)
    service = await startObserved(env)
    const database = await resources.acquire(connectTo(env))
    await database.importArchive(free.archive)
    await database.importArchive(solo.archive)
  })
  afterAll(async () => {
    await service?.stop()
    await resources.release()
  })

  const ask = async (key: string) => {
    const started = performance.now()
    const response = await fetch(`${service.url}/api/v1/prompts`, {
      headers: { authorization: `Bearer ${key}` }
    })
    await response.arrayBuffer()
    return { status: response.status, duration: performance.now() - started }
  }

  it("with prompts locked exclusively a Free key gets its 403 at once, and a Solo key's read waits in vain", async () => {
    const scope = Effect.runSync(Scope.make())
    const context = await Effect.runPromise(
      Scope.provide(Layer.build(PgClient.layer({ url: Redacted.make(env.DATABASE_URL!) })), scope)
    )
    const locked = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const holder = Effect.runPromise(
      Effect.flatMap(PgClient.PgClient, (sql) =>
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`lock table prompts, prompt_tags, tags, folders, prompt_versions, fragments, prompt_fragments in access exclusive mode`
            locked.resolve()
            yield* Effect.promise(() => release.promise)
          })
        )
      ).pipe(Effect.provideContext(context))
    )
    try {
      await locked.promise
      const waiting = ask(solo.keys.active.plaintext)
      const refused = await Promise.all(Array.from({ length: 20 }, () => ask(free.keys.active.plaintext)))
      expect(refused.map(({ status }) => status)).toEqual(Array(20).fill(403))
      const { status, duration } = await waiting
      expect(status).toBe(503)
      expect(Math.max(...refused.map((answer) => answer.duration))).toBeLessThan(duration / 2)
    } finally {
      release.resolve()
      await holder
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
    expect((await ask(solo.keys.active.plaintext)).status).toBe(200)
  })
})
