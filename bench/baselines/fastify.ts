/**
 * The API that an engineer would write in a day with Fastify and postgres.js: one key lookup and one statement per
 * request, without a cache. For the measured requests, the errors, access rules, limits, headers and bodies of this API
 * equal those of the service.
 */
import { hash, randomUUID } from "node:crypto"
import fastify, { type FastifyRequest } from "fastify"
import postgres from "postgres"

const sql = postgres(process.env.DATABASE_URL!, { onnotice: () => {} })
const perKey = Number(process.env.RATE_LIMIT_PER_KEY ?? 100)
const perProcess = Number(process.env.RATE_LIMIT_PER_PROCESS ?? 500)

class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Record<string, string>
  constructor(status: number, code: string, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

const badRequest = (message: string) => new ApiError(400, "BAD_REQUEST", message)
const promptNotFound = () => new ApiError(404, "NOT_FOUND", "Prompt not found")
const versionNotFound = () => new ApiError(404, "NOT_FOUND", "Version not found")
const unauthorized = (message: string, error = ', error="invalid_token"') =>
  new ApiError(401, "UNAUTHORIZED", message, { "www-authenticate": `Bearer realm="api"${error}` })

// ---- admission

const counts = new Map<string, number>()
let minute = 0

const consumeQuota = (bucket: string, scope: string, limit: number): void => {
  const now = Date.now()
  const current = Math.floor(now / 60_000)
  if (current !== minute) {
    minute = current
    counts.clear()
  }
  const used = counts.get(bucket) ?? 0
  if (used >= limit) {
    const seconds = Math.max(1, Math.ceil(((current + 1) * 60_000 - now) / 1000))
    throw new ApiError(429, "RATE_LIMITED", "Rate limit exceeded", {
      "retry-after": String(seconds),
      "ratelimit-policy": `"${scope}";q=${limit};w=60`,
      ratelimit: `"${scope}";r=0;t=${seconds}`
    })
  }
  counts.set(bucket, used + 1)
}

const admit = async (request: FastifyRequest): Promise<string> => {
  const token = /^bearer +([\x21-\x2b\x2d-\x7e]+)$/i.exec(request.headers.authorization ?? "")?.[1]
  if (token === undefined) throw unauthorized("Missing or malformed Authorization header", "")
  if (!token.startsWith("key_live_")) throw unauthorized("Invalid API key format")
  if (!/^key_live_[0-9a-f]{64}$/.test(token)) throw unauthorized("Invalid API key")
  const [key] = await sql`
    select k.id, k.revoked_at, u.must_reset_password, w.id as workspace_id, w.tier, w.billing_status
    from api_keys k join users u on u.id = k.created_by left join workspaces w on w.id = k.workspace_id
    where k.key_hash = ${Buffer.from(hash("sha256", token, "hex"), "hex")}`
  if (key === undefined) throw unauthorized("Invalid API key")
  if (key.revoked_at !== null) throw unauthorized("API key has been revoked")
  if (key.must_reset_password) throw unauthorized("API key owner must reset password")
  if (key.workspace_id === null) throw unauthorized("API key has no organization assigned")
  if (key.tier !== "solo" && key.tier !== "team")
    throw new ApiError(403, "API_NOT_ALLOWED", "API access requires the Solo plan or higher")
  if (key.billing_status === "disputed")
    throw new ApiError(402, "DISPUTED", "Workspace has an active payment dispute")
  if (key.billing_status !== "active")
    throw new ApiError(402, "PAST_DUE", "Subscription is past due or over its limit")
  consumeQuota(key.id, "key", perKey)
  consumeQuota("process", "process", perProcess)
  return key.workspace_id
}

// ---- reading requests

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

type Query = Partial<Record<"page" | "per_page", string>>

const parseCount = (query: Query, name: "page" | "per_page", defaultValue: number): number => {
  const text = query[name]
  if (text === undefined) return defaultValue
  const value = Number(text)
  if (!/^[1-9][0-9]*$/.test(text) || !Number.isSafeInteger(value))
    throw badRequest(`${name} must be an integer from 1 to 9007199254740991`)
  return value
}

const parsePage = (query: Query) => ({
  page: parseCount(query, "page", 1),
  per_page: Math.min(parseCount(query, "per_page", 20), 100)
})

/** Returns the OFFSET of a page, limited to a value that PostgreSQL accepts. */
const computeOffset = ({ page, per_page }: ReturnType<typeof parsePage>): number =>
  Math.min((page - 1) * per_page, 2 ** 31)

const parseId = (request: FastifyRequest): string => {
  const { id } = request.params as { id: string }
  if (!uuid.test(id)) throw promptNotFound()
  return id
}

// ---- routes

const slot = /\{\{([^{}]{1,256})\}\}/g

const fill = (content: string, overrides: Record<string, unknown>): string =>
  content.replace(slot, (text, name: string) => {
    const value = Object.hasOwn(overrides, name.trim()) ? overrides[name.trim()] : undefined
    return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
      ? String(value)
      : text
  })

const toPageEnvelope = (
  rows: ReadonlyArray<Record<string, unknown>>,
  page: ReturnType<typeof parsePage>,
  id: string
) => ({
  data: rows.filter((row) => row[id] !== null).map(({ total: _, ...item }) => item),
  meta: { ...page, total: rows[0]!.total }
})

const app = fastify({ genReqId: () => randomUUID(), requestIdHeader: "x-request-id" })

app.addHook("onRequest", async (request, reply) => {
  reply.headers({ "x-request-id": request.id, "x-content-type-options": "nosniff" })
})

app.addHook("onSend", async (request, reply, body) => {
  reply.header("content-type", "application/json")
  if (reply.statusCode !== 200) return body
  const etag = `"${hash("sha256", body as string, "base64url")}"`
  reply.headers({
    "cache-control": "public, s-maxage=30, stale-while-revalidate=300",
    vary: "Authorization",
    etag
  })
  const ifNoneMatch = request.headers["if-none-match"]
  if (ifNoneMatch === undefined || !(ifNoneMatch === "*" || ifNoneMatch.includes(etag))) return body
  reply.status(304)
  reply.removeHeader("content-type")
  return null
})

app.setErrorHandler((error, _request, reply) => {
  const apiError = error instanceof ApiError ? error : new ApiError(500, "INTERNAL_ERROR", "Internal error")
  if (apiError.status === 500) console.error(error)
  return reply
    .status(apiError.status)
    .headers({ "cache-control": "no-store", vary: "Authorization", ...apiError.headers })
    .send({ error: { code: apiError.code, message: apiError.message } })
})

app.get("/api/v1/prompts", async (request) => {
  const workspace = await admit(request)
  const page = parsePage(request.query as Query)
  const matching = sql`p.workspace_id = ${workspace} and not p.is_archived`
  const rows = await sql`
    select total.count as total, page.*
    from (select count(*)::int from prompts p where ${matching}) total
    left join (
      select p.id, p.title, p.description, p.prompt_type, p.target_model, p.intent, p.current_version,
        p.created_at, p.updated_at
      from prompts p where ${matching}
      order by p.updated_at desc, p.id desc limit ${page.per_page} offset ${computeOffset(page)}
    ) page on true
    order by page.updated_at desc, page.id desc`
  return toPageEnvelope(rows, page, "id")
})

app.get("/api/v1/prompts/:id/resolved", async (request, reply) => {
  const workspace = await admit(request)
  const [row] = await sql`
    select p.id, p.title, p.prompt_type, p.target_model, p.current_content, p.current_version,
      coalesce(
        json_agg(json_build_object('content', f.content, 'overrides', pf.variable_overrides)
          order by pf.position, pf.id) filter (where f.id is not null), '[]') as fragments
    from prompts p
    left join prompt_fragments pf on pf.prompt_id = p.id
    left join fragments f on f.id = pf.fragment_id and f.workspace_id = p.workspace_id
    where p.id = ${parseId(request)} and p.workspace_id = ${workspace}
    group by p.id`
  if (row === undefined) throw promptNotFound()
  const { current_content, current_version, fragments, ...prompt } = row
  reply.header("prompt-version", String(current_version))
  const contents = fragments.map((fragment: { content: string; overrides: Record<string, unknown> }) =>
    fill(fragment.content, fragment.overrides)
  )
  return {
    data: {
      ...prompt,
      resolved_content: [current_content, ...contents].join("\n\n"),
      fragment_count: fragments.length
    }
  }
})

app.get("/api/v1/prompts/:id/versions", async (request) => {
  const workspace = await admit(request)
  const page = parsePage(request.query as Query)
  const rows = await sql`
    select total.count as total, page.*
    from prompts p
    cross join lateral (select count(*)::int from prompt_versions v where v.prompt_id = p.id) total
    left join lateral (
      select v.version_number, v.change_summary, v.change_source, v.created_at
      from prompt_versions v where v.prompt_id = p.id
      order by v.version_number desc limit ${page.per_page} offset ${computeOffset(page)}
    ) page on true
    where p.id = ${parseId(request)} and p.workspace_id = ${workspace}
    order by page.version_number desc`
  if (rows.length === 0) throw promptNotFound()
  return toPageEnvelope(rows, page, "version_number")
})

app.get("/api/v1/prompts/:id/versions/:number", async (request) => {
  const workspace = await admit(request)
  const { number } = request.params as { number: string }
  if (!/^[1-9][0-9]*$/.test(number) || Number(number) >= 2 ** 31) throw versionNotFound()
  const [version] = await sql`
    select v.id, v.prompt_id, v.version_number, v.content, v.change_summary, v.change_source,
      parent.id as parent_version_id, v.metadata, v.created_at
    from prompts p
    join prompt_versions v on v.prompt_id = p.id
    left join prompt_versions parent on parent.id = v.parent_version_id and parent.prompt_id = p.id
    where p.id = ${parseId(request)} and p.workspace_id = ${workspace} and v.version_number = ${number}`
  if (version === undefined) throw versionNotFound()
  return { data: version }
})

await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT) })
