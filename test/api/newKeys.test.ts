import { describe, expect, it } from "vitest"
import { archive, fragment, fragmentBinding, key, newId, prompt, sample } from "../support/archives.ts"
import { toComparable } from "./generatedRequests.ts"
import { authorize, endpointTargets, startApi } from "./startApi.ts"

/** Returns a sample workspace with a prompt whose resolved content is large and one whose fragments are large. */
const makeSampleTenant = (overrides: Parameters<typeof sample>[0] = {}) => {
  const { archive: own, keys } = sample(overrides)
  const slots = fragment("{{text}}".repeat(1_000))
  const large = fragment("x".repeat(300_000))
  const prompts = [
    ...own.prompts,
    prompt({ fragments: [fragmentBinding(slots, 1, { variable_overrides: { text: "y".repeat(1_000) } })] }),
    prompt({ fragments: [fragmentBinding(large, 1)] })
  ]
  /** Returns a key that no request has used. */
  const makeKey = () => {
    const made = key(own.workspace.id, own.users[0]!)
    api_keys.push(made.stored)
    return made.plaintext
  }
  const api_keys = [...own.api_keys]
  return {
    keys,
    makeKey,
    archive: { ...own, api_keys, prompts, fragments: [...own.fragments, slots, large] }
  }
}

describe("the first request of a key", () => {
  const [own, other, free, disputed] = [
    makeSampleTenant(),
    makeSampleTenant(),
    makeSampleTenant({ tier: "free" }),
    makeSampleTenant({ billing_status: "disputed" })
  ]
  const ids = [...own.archive.prompts.map(({ id }) => id), other.archive.prompts[0]!.id, newId()]
  const targets = ids.flatMap((id) => Object.values(endpointTargets(id)))
  const newKeys = targets.map(() => own.makeKey())
  const { send } = startApi([own.archive, other.archive, free.archive, disputed.archive, archive()])

  it("gets the same response as a later request of another key", async () => {
    const knownKey = authorize(own.keys.active.plaintext)
    for (const [index, target] of targets.entries()) {
      const first = await send(target, [authorize(newKeys[index]!)])
      expect(toComparable(await send(target, [knownKey]))).toEqual(toComparable(first))
    }
  })

  it("gets the error of its key or workspace, although the prompt exists", async () => {
    const readError = async (tenant: typeof own, plaintext: string) => {
      const { getResolved } = endpointTargets(tenant.archive.prompts[0]!.id)
      const { status, body } = await send(getResolved, [authorize(plaintext)])
      return [status, JSON.parse(body.toString()).error.message]
    }
    expect(await readError(own, `key_live_${"0".repeat(64)}`)).toEqual([401, "Invalid API key"])
    expect(await readError(own, own.keys.revoked.plaintext)).toEqual([401, "API key has been revoked"])
    expect(await readError(own, own.keys.ownerMustReset.plaintext)).toEqual([
      401,
      "API key owner must reset password"
    ])
    expect(await readError(own, own.keys.legacy.plaintext)).toEqual([
      401,
      "API key has no organization assigned"
    ])
    expect(await readError(free, free.keys.active.plaintext)).toEqual([403, expect.any(String)])
    expect(await readError(disputed, disputed.keys.active.plaintext)).toEqual([402, expect.any(String)])
  })
})
