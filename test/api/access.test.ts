import { beforeAll, it } from "vitest"
import { type ExpectedError, expectError } from "./expectations.ts"
import { authorize, makeTenant, startApi } from "./startApi.ts"

const freeAndDisputed = makeTenant({ tier: "free", billing_status: "disputed" })
const unknownTier = makeTenant()
const disputed = makeTenant({ billing_status: "disputed" })
const pastDue = makeTenant({ tier: "team", billing_status: "past_due" })
const overLimit = makeTenant({ billing_status: "over_limit" })

const api = startApi(
  [freeAndDisputed, unknownTier, disputed, pastDue, overLimit].map(({ archive }) => archive)
)
beforeAll(async () => {
  // An import rejects an unknown tier, so the test writes the tier to the database.
  const { id } = unknownTier.archive.workspace
  await api.sql("update workspaces set tier = 'enterprise' where id = $1", [id])
})

const apiNotAllowed: ExpectedError = [403, "API_NOT_ALLOWED", "API access requires the Solo plan or higher"]
const paymentDispute: ExpectedError = [402, "DISPUTED", "Workspace has an active payment dispute"]
const paymentDue: ExpectedError = [402, "PAST_DUE", "Subscription is past due or over its limit"]

it.each([
  ["on the Free tier (also if it is disputed)", 403, freeAndDisputed, apiNotAllowed],
  ["on an unknown tier", 403, unknownTier, apiNotAllowed],
  ["that is disputed", 402, disputed, paymentDispute],
  ["that is past due", 402, pastDue, paymentDue],
  ["that is over its limit", 402, overLimit, paymentDue]
] as const)(
  "for a key of a workspace %s, every endpoint returns %i, even if the query or the id is invalid",
  async (_, __, tenant, expected) => {
    const targets = [
      "/api/v1/prompts",
      "/api/v1/prompts?page=0",
      ...["", "/resolved", "/versions", "/versions/x"].map((end) => `/api/v1/prompts/x${end}`)
    ]
    for (const target of targets) expectError(await api.send(target, [authorize(tenant.key)]), expected)
  }
)
