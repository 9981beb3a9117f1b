/**
 * Tests an application with a client whose `fetch` returns prepared responses. Needs no service.
 *
 *     npx node --test examples/client-testing.ts
 */
import assert from "node:assert/strict"
import { test } from "node:test"
import { fillSlots, PromptClient, ServiceUnavailableError } from "@prompt-retrieval/client"

/** The code under test: it gets the client as an argument. */
const makeSystemPrompt = async (client: PromptClient, shop: string): Promise<string> => {
  const { data } = await client.prompts.getResolved("cef02dd3-514f-5723-8852-d3305a2e66a8")
  return fillSlots(data.resolved_content, { shop })
}

/** Creates a client that gets the same response to every request. */
const makeClient = (status: number, body: object) =>
  new PromptClient({
    apiKey: "key_live_test",
    maxRetries: 0,
    fetch: async () => Response.json(body, { status })
  })

test("the system prompt names the shop", async () => {
  const client = makeClient(200, { data: { resolved_content: "You are an agent of {{shop}}." } })
  assert.equal(await makeSystemPrompt(client, "Acme"), "You are an agent of Acme.")
})

test("the system prompt is not available while the service is down", async () => {
  const error = { code: "SERVICE_UNAVAILABLE", message: "Service unavailable" }
  await assert.rejects(makeSystemPrompt(makeClient(503, { error }), "Acme"), ServiceUnavailableError)
})
