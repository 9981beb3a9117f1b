import { it } from "vitest"
import { instant, key as makeKey, sample } from "../support/archives.ts"
import {
  expectError,
  expectSuccess,
  invalidKey,
  invalidKeyFormat,
  malformedAuthorization,
  unauthorized
} from "./expectations.ts"
import { authorize, startApi } from "./startApi.ts"

const home = sample()
const { active, ...keys } = home.keys
const key = active.plaintext
const target = "/api/v1/prompts"
const [ada] = home.archive.users
const workspaceId = home.archive.workspace.id
const past = instant("2026-01-02T00:00:00.000Z")
const expired = makeKey(workspaceId, ada!, { expires_at: past })
const expiring = makeKey(workspaceId, ada!, { expires_at: instant("2999-01-01T00:00:00.000Z") })
const api_keys = [expired, expiring].map(({ stored }) => stored)
const { send } = startApi([{ ...home.archive, api_keys: [...home.archive.api_keys, ...api_keys] }])

it.each([
  ["no Authorization header", []],
  ["an empty Authorization header", ["Authorization:"]],
  ["an Authorization header without a token", ["Authorization: Bearer"]],
  ["an Authorization header without a scheme", [`Authorization: ${key}`]],
  ["the scheme Basic", [`Authorization: Basic ${key}`]],
  ["the scheme Bearers", [`Authorization: Bearers ${key}`]],
  ["a tab before the token", [`Authorization: Bearer\t${key}`]],
  ["text after the token", [`Authorization: Bearer ${key} x`]],
  ["a list of tokens", [`Authorization: Bearer ${key}, Bearer ${key}`]],
  ["two equal Authorization headers", [authorize(key), authorize(key)]],
  ["two Authorization headers of which the first is valid", [authorize(key), "authorization: Basic x"]],
  ["a token that is not ASCII", [`Authorization: Bearer ${key}\u00e9`]],
  ["a quoted Authorization header", [`Authorization: "Bearer ${key}"`]],
  ["a key in a cookie only", [`Cookie: authorization=Bearer ${key}`]],
  ["a key in another header only", [`X-Api-Key: ${key}`]]
])(
  'a request with %s gets 401 "Missing or malformed", even if its query contains a key',
  async (_, lines) => {
    expectError(await send(target, lines), malformedAuthorization)
    expectError(await send(`${target}?api_key=${key}&access_token=${key}`, lines), malformedAuthorization)
  }
)

it.each([
  ["another prefix", key.replace("key_live_", "key_test_")],
  ["an uppercase prefix", key.replace("key_live_", "KEY_LIVE_")],
  ["no prefix", key.slice("key_live_".length)],
  ["half a prefix", "key_live"]
])('a token with %s gets 401 "Invalid API key format"', async (_, token) => {
  expectError(await send(target, [authorize(token)]), invalidKeyFormat)
})

it.each([
  ["nothing after the prefix", "key_live_"],
  ["a digit too few", key.slice(0, -1)],
  ["a digit too many", `${key}0`],
  ["uppercase digits", `key_live_${"A".repeat(64)}`],
  ["characters that are not hexadecimal", `key_live_${"g".repeat(64)}`],
  ["digits that belong to no key", `key_live_${"0".repeat(64)}`]
])('a token with %s gets 401 "Invalid API key"', async (_, token) => {
  expectError(await send(target, [authorize(token)]), invalidKey)
})

it.each([
  ["is revoked", keys.revoked, "API key has been revoked"],
  ["is expired", expired, "API key has been revoked"],
  ["has an owner who must reset the password", keys.ownerMustReset, "API key owner must reset password"],
  ["has no organization", keys.legacy, "API key has no organization assigned"]
])("a key that %s gets 401", async (_, { plaintext }, message) => {
  expectError(await send(target, [authorize(plaintext)]), unauthorized(message))
})

it.each([
  ["in lowercase", `bearer ${key}`],
  ["in uppercase, before several spaces", `BEARER   ${key}`],
  ["with spaces around the value", ` Bearer ${key}  `]
])("the service accepts the scheme Bearer %s", async (_, value) => {
  expectSuccess(await send(target, [`authorization:${value}`]))
})

it("the service accepts a key whose expiry is in the future", async () => {
  expectSuccess(await send(target, [authorize(expiring.plaintext)]))
})
