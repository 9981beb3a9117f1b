import { it } from "vitest"
import { newId, sample } from "../support/archives.ts"
import { getHeader } from "../support/clients/rawHttp.ts"
import {
  expectError,
  expectNotModified,
  expectSuccess,
  malformedAuthorization,
  promptNotFound
} from "./expectations.ts"
import { authorize, startApi } from "./startApi.ts"

const home = sample()
const authorization = authorize(home.keys.active.plaintext)
const [greeting] = home.archive.prompts
const target = `/api/v1/prompts/${greeting!.id}`
const version = greeting!.current_version
const { send } = startApi([home.archive])

const readEtag = async (path = target): Promise<string> =>
  getHeader(await send(path, [authorization]), "etag")!

it("GET and HEAD return 304 with only the caching headers and Prompt-Version if If-None-Match contains the ETag", async () => {
  const etag = await readEtag()
  for (const value of [etag, `W/${etag}`, `"x", ${etag}`, `"a,b" ,W/${etag}`, "*", ` ${etag} `])
    for (const method of ["GET", "HEAD"])
      expectNotModified(await send(target, [authorization, `If-None-Match: ${value}`], method), etag, version)
  const lines = [authorization, 'If-None-Match: "x"', `If-None-Match: ${etag}`]
  expectNotModified(await send(target, lines), etag, version)
})

it("GET returns 200 if If-None-Match contains only other ETags, such as the ETag of another resource", async () => {
  const etag = await readEtag()
  const other = await readEtag(`${target}/resolved`)
  for (const value of [other, '"x"', etag.slice(1, -1), "", etag.toLowerCase().replace(/[a-z]/, "_")])
    expectSuccess(await send(target, [authorization, `If-None-Match: ${value}`]), undefined, version)
})

it("If-None-Match does not turn an error into a 304", async () => {
  const unknown = `/api/v1/prompts/${newId()}`
  expectError(await send(unknown, [authorization, "If-None-Match: *"]), promptNotFound)
  expectError(await send(target, ["If-None-Match: *"]), malformedAuthorization)
})
