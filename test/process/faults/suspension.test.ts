import { setTimeout } from "node:timers/promises"
import { afterAll, expect, it } from "vitest"
import { startApi } from "../../api/startApi.ts"
import { type Reply, read, sendWait } from "../../support/clients/read.ts"
import { makeOutageTenant, warm } from "../../support/services/outage.ts"

const tenant = makeOutageTenant()
const { active, second } = tenant.keys
const paths = tenant.archive.prompts.map(({ id }) => `/api/v1/prompts/${id}`)
const api = startApi([tenant.archive])
afterAll(() => void api.service()?.process.kill("SIGCONT"))

const readAll = (key: string) => Promise.all(paths.map((path) => read(api.service().url + path, key)))
const readBoth = () => Promise.all([readAll(active.plaintext), readAll(second.plaintext)])

// If the service was suspended for more than 3 s, its change feed is down when the service resumes.
it.each([1, 4])(
  "after a suspension of %i s, a service returns neither an outdated prompt nor an outdated 304, and accepts no revoked key",
  async (seconds) => {
    await api.sql("update api_keys set revoked_at = null where id = $1", [second.stored.id])
    const isRestored = async () => (await readAll(second.plaintext)).every(({ status }) => status === 200)
    await expect.poll(isRestored).toBe(true)
    await warm([api.service()], tenant)
    await expect.poll(() => api.metric("prompt_retrieval_change_feed_up")).toBe(1)
    const resolved = `${api.service().url}${paths[0]}/resolved`
    const { etag } = (await read(resolved, active.plaintext)).headers
    const waiting = sendWait(resolved, active.plaintext, etag, Math.max(1, seconds - 1)).response
    await expect.poll(() => api.metric("prompt_retrieval_http_requests_held")).toBe(1)
    const title = `Edited after ${seconds} s`
    // This load makes sure that the service is suspended while it handles requests.
    let isLoaded = true
    const load = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (isLoaded) await readAll(active.plaintext)
      })
    )
    api.service().process.kill("SIGSTOP")
    await api.sql("update prompts set title = $1, current_content = $1", [title])
    await api.sql("update api_keys set revoked_at = now() where id = $1", [second.stored.id])
    // These requests arrive while the service is suspended. All later requests arrive after the service has resumed.
    const pending = [readBoth()]
    await setTimeout(seconds * 1_000)
    api.service().process.kill("SIGCONT")
    for (let round = 0; round < 40; round++) {
      pending.push(readBoth())
      await setTimeout(20)
    }
    isLoaded = false
    await load
    const replies = await Promise.all(pending)
    // After the service resumes, it can reject some of the queued requests with 503.
    const summarize = ({ status, body, headers }: Reply) =>
      status === 503
        ? "rejected"
        : [status, headers["cache-status"], status === 200 && JSON.parse(body).data.title === title]
    const edited = replies.flatMap(([edited]) => edited.map(summarize)).filter((each) => each !== "rejected")
    expect(edited).toEqual(edited.map(() => [200, undefined, true]))
    const revoked = replies.flatMap(([, revoked]) => revoked.map(({ status }) => status))
    expect(revoked.filter((status) => status !== 401 && status !== 503)).toEqual([])
    expect((await readAll(active.plaintext)).map(({ status }) => status)).toEqual(paths.map(() => 200))
    const { status, body } = await waiting
    expect([status, JSON.parse(body).data.resolved_content.startsWith(title)]).toEqual([200, true])
  }
)
