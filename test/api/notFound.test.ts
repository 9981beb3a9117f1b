import { it } from "vitest"
import { newId, sample } from "../support/archives.ts"
import { expectError, promptNotFound, versionNotFound } from "./expectations.ts"
import { authorize, startApi } from "./startApi.ts"

const home = sample()
const other = sample()
const { id } = home.archive.prompts[0]!
const api = startApi([home.archive, other.archive])
const send = (target: string) => api.send(target, [authorize(home.keys.active.plaintext)])

it.each([
  ["the id of another workspace's prompt", other.archive.prompts[0]!.id],
  ["an id that no prompt has", newId()],
  ["x", "x"],
  ["0", "0"],
  ["an id without dashes", id.replaceAll("-", "")],
  ["an id in braces", `{${id}}`],
  ["an id with one digit more", `${id}0`],
  ["300 characters", "a".repeat(300)],
  ["a quote", "'"],
  ["null", "null"],
  [":id", ":id"]
])("every endpoint below /prompts/{id} returns the same 404 for %s", async (_, promptId) => {
  const prompt = `/api/v1/prompts/${promptId}`
  for (const end of ["", "/resolved", "/versions"]) expectError(await send(prompt + end), promptNotFound)
  for (const version of ["1", "2", "x"])
    expectError(await send(`${prompt}/versions/${version}`), versionNotFound)
})

it.each([
  ...["0", "4", "01", "+1", "1.0", "-1", "1e0", "x"],
  ...["2147483647", "2147483648", "99999999999999999999"]
])("GET /prompts/{id}/versions/%s returns 404 for a prompt with the versions 1 to 3", async (version) => {
  expectError(await send(`/api/v1/prompts/${id}/versions/${version}`), versionNotFound)
})
