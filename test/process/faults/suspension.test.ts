import { setTimeout } from "node:timers/promises"
import { afterAll, describe, expect, it } from "vitest"
import { type Reply, read } from "../../support/clients/read.ts"
import { makeOutageTenant, warm } from "../../support/services/outage.ts"
import { startApi } from "../../api/startApi.ts"

describe("a service that is suspended while its database works", () => {
  const tenant = makeOutageTenant()
  const { active, second } = tenant.keys
  const paths = tenant.archive.prompts.map(({ id }) => `/api/v1/prompts/${id}`)
  const api = startApi([tenant.archive])
  afterAll(() => void api.service()?.process.kill("SIGCONT"))

  const readAll = (key: string) => Promise.all(paths.map((path) => read(api.service().url + path, key)))

  it.each([2, 6])(
    "after a service was suspended for %i s, it returns no outdated prompt and accepts no key that was revoked during the suspension",
    { timeout: 60_000 },
    async (seconds) => {
      await api.sql("update api_keys set revoked_at = null where id = $1", [second.stored.id])
      await expect
        .poll(async () => (await readAll(second.plaintext)).every(({ status }) => status === 200), {
          timeout: 15_000
        })
        .toBe(true)
      await warm([api.service()], tenant)
      const title = `Edited after ${seconds} s`
      // This load makes sure that the service is suspended while it handles requests.
      let isLoaded = true
      const load = Promise.all(
        Array.from({ length: 4 }, async () => {
          while (isLoaded) await readAll(active.plaintext)
        })
      )
      await setTimeout(200)
      api.service().process.kill("SIGSTOP")
      const wakesAt = performance.now() + seconds * 1_000
      await setTimeout(100)
      await api.sql("update prompts set title = $1", [title])
      await api.sql("update api_keys set revoked_at = now() where id = $1", [second.stored.id])
      // These requests arrive while the service is suspended. All later requests arrive after it has resumed.
      const replies: Array<Promise<ReadonlyArray<Reply>>> = [
        readAll(active.plaintext),
        readAll(second.plaintext)
      ]
      await setTimeout(wakesAt - performance.now() + 5)
      api.service().process.kill("SIGCONT")
      for (const end = performance.now() + 2_000; performance.now() < end; ) {
        replies.push(readAll(active.plaintext), readAll(second.plaintext))
        await setTimeout(20)
      }
      isLoaded = false
      await load
      const [edited, revoked] = [0, 1].map(async (parity) =>
        (await Promise.all(replies.filter((_, index) => index % 2 === parity))).flat()
      )
      // After the service resumes, it may reject some of the queued requests with 503.
      const stale = (await edited!).filter(
        ({ status, body }) => status !== 503 && (status !== 200 || JSON.parse(body).data.title !== title)
      )
      expect(stale.map(({ status, headers }) => [status, headers["cache-status"]])).toEqual([])
      const admitted = (await revoked!).filter(({ status }) => status !== 401 && status !== 503)
      expect(admitted.map(({ status }) => status)).toEqual([])
      expect((await readAll(active.plaintext)).map(({ status }) => status)).toEqual(paths.map(() => 200))
    }
  )
})
