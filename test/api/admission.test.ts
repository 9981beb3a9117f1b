import { beforeAll, it } from "vitest"
import { makeTenant, sample } from "../support/archives.ts"
import {
  type ExpectedError,
  expectError,
  expectSuccess,
  malformedAuthorization,
  unauthorized
} from "./expectations.ts"
import { authorize, endpointTargets, startApi } from "./startApi.ts"

const home = sample()
const { active, ...keys } = home.keys
const key = active.plaintext
const target = "/api/v1/prompts"

const freeAndDisputed = makeTenant({ workspace: { tier: "free", billing_status: "disputed" } })
const unknownTier = makeTenant()
const disputed = makeTenant({ workspace: { billing_status: "disputed" } })
const pastDue = makeTenant({ workspace: { tier: "team", billing_status: "past_due" } })
const overLimit = makeTenant({ workspace: { billing_status: "over_limit" } })

const tenants = [home, freeAndDisputed, unknownTier, disputed, pastDue, overLimit]
const api = startApi(tenants.map(({ archive }) => archive))
const { send } = api
beforeAll(async () => {
  // An import rejects an unknown tier, so the test writes the tier with SQL.
  const { id } = unknownTier.archive.workspace
  await api.sql("update workspaces set tier = 'enterprise' where id = $1", [id])
})

it.each([
  ["no Authorization header", []],
  ["an empty Authorization header", ["Authorization:"]],
  ["an Authorization header without a token", ["Authorization: Bearer"]],
  ["the scheme Basic", [`Authorization: Basic ${key}`]],
  ["the scheme Bearers", [`Authorization: Bearers ${key}`]],
  ["a tab before the token", [`Authorization: Bearer\t${key}`]],
  ["text after the token", [`Authorization: Bearer ${key} x`]],
  ["two equal Authorization headers", [authorize(key), authorize(key)]],
  ["a token that is not ASCII", [`Authorization: Bearer ${key}\u00e9`]],
  ["a key in a cookie only", [`Cookie: authorization=Bearer ${key}`]],
  ["a key in the header X-Api-Key only", [`X-Api-Key: ${key}`]]
])(
  'a request with %s gets 401 "Missing or malformed", even if its query contains a key',
  async (_, lines) => {
    expectError(await send(target, lines), malformedAuthorization)
    expectError(await send(`${target}?api_key=${key}&access_token=${key}`, lines), malformedAuthorization)
  }
)

it.each([
  ["has another prefix", key.replace("key_live_", "key_test_"), "Invalid API key format"],
  ["lacks a digit", key.slice(0, -1), "Invalid API key"],
  ["does not exist", `key_live_${"0".repeat(64)}`, "Invalid API key"],
  ["is revoked", keys.revoked.plaintext, "API key has been revoked"],
  [
    "has an owner who must reset the password",
    keys.ownerMustReset.plaintext,
    "API key owner must reset password"
  ],
  ["has no workspace", keys.legacy.plaintext, "API key has no organization assigned"]
])("a request whose key %s gets 401", async (_, token, message) => {
  expectError(await send(target, [authorize(token)]), unauthorized(message))
})

it.each([
  ["in lowercase", `bearer ${key}`],
  ["in uppercase, before several spaces", `BEARER   ${key}`],
  ["with spaces around the header value", ` Bearer ${key}  `]
])("the service accepts the scheme Bearer %s", async (_, value) => {
  expectSuccess(await send(target, [`authorization:${value}`]))
})

const apiNotAllowed: ExpectedError = [403, "API_NOT_ALLOWED", "API access requires the Solo plan or higher"]
const paymentDispute: ExpectedError = [402, "DISPUTED", "Workspace has an active payment dispute"]
const paymentDue: ExpectedError = [402, "PAST_DUE", "Subscription is past due or over its limit"]

it.each([
  ["that is on the Free tier and disputed", 403, freeAndDisputed, apiNotAllowed],
  ["that is on an unknown tier", 403, unknownTier, apiNotAllowed],
  ["that is disputed", 402, disputed, paymentDispute],
  ["that is past due", 402, pastDue, paymentDue],
  ["that is over its limit", 402, overLimit, paymentDue]
] as const)(
  "with a key of a workspace %s, every endpoint returns %i, even if the query or the id is invalid",
  async (_, __, tenant, expected) => {
    for (const target of [...Object.values(endpointTargets("x")), "/api/v1/prompts?page=0"])
      expectError(await send(target, [authorize(tenant.key.plaintext)]), expected)
  }
)
