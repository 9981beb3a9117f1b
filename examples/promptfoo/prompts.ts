/** Prompt functions for promptfoo. */
import { fillSlots, PromptClient } from "@prompt-retrieval/client"

interface Context {
  readonly vars: { readonly shop: string; readonly question: string }
}

const client = new PromptClient({ cache: {} })

/** Marks a text that promptfoo must not read as a template. */
const literal = (text: string): string => `{% raw %}${text}{% endraw %}`

export const supportAgent = async ({ vars }: Context) => {
  const { data } = await client.prompts.getResolved("support-agent")
  return [
    { role: "system", content: literal(fillSlots(data, { shop: vars.shop })) },
    { role: "user", content: literal(vars.question) }
  ]
}
