import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "vitest"
import { toNodeListener } from "../../src/index.ts"

it("the promise of toNodeListener resolves if the host has responded first", async () => {
  let respond = (_: Response): void => {}
  const listener = toNodeListener(() => new Promise((resolve) => (respond = resolve)))
  let listening: Promise<void> = Promise.resolve()
  const server = createServer((request, response) => {
    listening = listener(request, response)
    response.writeHead(503).end()
    respond(new Response("late"))
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  expect((await fetch(`http://127.0.0.1:${port}/api/v1/prompts`)).status).toBe(503)
  await expect(listening).resolves.toBeUndefined()
  server.close()
})
