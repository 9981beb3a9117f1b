import { createServer, get } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, expect, it } from "vitest"
import { toNodeListener } from "../../src/index.ts"

let close = (): void => {}
afterEach(() => close())

const start = async (listener: Parameters<typeof createServer>[1]): Promise<number> => {
  const server = createServer(listener)
  close = () => server.close()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return (server.address() as AddressInfo).port
}

const readStatus = (port: number, path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get({ port, path, agent: false }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode))
    }).on("error", reject)
  })

it("toNodeListener takes a path that begins with // for a path, not for a host", async () => {
  const port = await start(toNodeListener(async ({ url }) => Response.json({ url })))
  expect(await readStatus(port, "/api/v1/prompts")).toBe(200)
  expect(await readStatus(port, "//host/api/v1/prompts")).toBe(404)
})

it("the promise of toNodeListener resolves if the host has responded first", async () => {
  let respond = (_: Response): void => {}
  const listener = toNodeListener(() => new Promise((resolve) => (respond = resolve)))
  let listening: Promise<void> = Promise.resolve()
  const port = await start((request, response) => {
    listening = listener(request, response)
    response.writeHead(503).end()
    respond(new Response("late"))
  })
  expect(await readStatus(port, "/api/v1/prompts")).toBe(503)
  await expect(listening).resolves.toBeUndefined()
})
