/**
 * Tests an application with a client of an in-memory service. Needs no running service.
 *
 * npx node --test examples/client-testing.ts
 */
import assert from "node:assert/strict"
import { test } from "node:test"
import { fillSlots, type PromptClient, ServiceUnavailableError } from "@prompt-retrieval/client"
import { FakeService } from "@prompt-retrieval/client/testing"

/** The code under test, which gets the client as an argument. */
const makeSystemPrompt = async (client: PromptClient, shop: string): Promise<string> => {
  const { data } = await client.prompts.getResolved("support-agent")
  return fillSlots(data, { shop })
}

const service = new FakeService({
  prompts: [{ name: "support-agent", content: "You are an agent of {{shop}}." }]
})

test("the system prompt names the shop", async () => {
  assert.equal(await makeSystemPrompt(service.connect(), "Acme"), "You are an agent of Acme.")
})

test("the system prompt is not available while the service is down", async () => {
  service.failWith(503)
  await assert.rejects(makeSystemPrompt(service.connect(), "Acme"), ServiceUnavailableError)
})
