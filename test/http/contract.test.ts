import { connect as connectSocket } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { archive, fragment, key, newId, prompt, sample, use, user, workspace } from "../support/archives.ts"
import { connectTo, embedded, makeResources } from "../support/database.ts"
import { startObserved } from "../support/observed.ts"
import { exchange, exchangeAll, headerOf, type RawAnswer, rawRequest } from "../support/rawHttp.ts"
import type { Service } from "../support/service.ts"

// ---- what every answer is held against

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const ofEveryAnswer = ["connection", "date", "x-content-type-options", "x-request-id"]
const ofErrors = ["cache-control", "content-length", "content-type", "vary"]
const ofSuccess = [...ofErrors, "etag"]
const cacheable = "public, s-maxage=30, stale-while-revalidate=300"

const names = (answer: RawAnswer) => answer.headers.map(([name]) => name).toSorted()
const sorted = (...lists: ReadonlyArray<ReadonlyArray<string>>) => lists.flat().toSorted()

const expectCommon = (answer: RawAnswer) => {
  expect(headerOf(answer, "x-content-type-options")).toBe("nosniff")
  expect(headerOf(answer, "x-request-id")).toMatch(uuid)
}

/** An error is its status, its envelope, exactly these headers, and nothing else. */
const expectError = (
  answer: RawAnswer,
  [status, code, message]: readonly [number, string, string],
  headers: Readonly<Record<string, string>> = {}
) => {
  expectCommon(answer)
  expect({ status: answer.status, body: answer.body }).toEqual({
    status,
    body: JSON.stringify({ error: { code, message } })
  })
  expect(names(answer)).toEqual(sorted(ofEveryAnswer, ofErrors, Object.keys(headers)))
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "cache-control": "no-store",
    vary: "Authorization",
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(answer.body)),
    ...headers
  })
}

/** A success has exactly the headers of DESIGN.md section 5 beside those of every answer. */
const expectSuccess = (answer: RawAnswer, body?: unknown) => {
  expectCommon(answer)
  expect(answer.status).toBe(200)
  expect(names(answer)).toEqual(sorted(ofEveryAnswer, ofSuccess))
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "cache-control": cacheable,
    vary: "Authorization",
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(answer.body)),
    etag: expect.stringMatching(/^"[A-Za-z0-9_-]{43}"$/)
  })
  if (body !== undefined) expect(JSON.parse(answer.body)).toEqual(body)
}

const challenge = { "www-authenticate": 'Bearer realm="api"' }
const invalidToken = { "www-authenticate": 'Bearer realm="api", error="invalid_token"' }
const malformed = [401, "UNAUTHORIZED", "Missing or malformed Authorization header"] as const
const badFormat = [401, "UNAUTHORIZED", "Invalid API key format"] as const
const invalid = [401, "UNAUTHORIZED", "Invalid API key"] as const
const badRequest = [400, "BAD_REQUEST", "Bad request"] as const
const routeNotFound = [404, "NOT_FOUND", "Route not found"] as const
const promptNotFound = [404, "NOT_FOUND", "Prompt not found"] as const
const versionNotFound = [404, "NOT_FOUND", "Version not found"] as const
const notAllowed = [405, "METHOD_NOT_ALLOWED", "Method not allowed"] as const
const countRule = (name: string) =>
  [400, "BAD_REQUEST", `${name} must be an integer from 1 to 9007199254740991`] as const
const once = (name: string) => [400, "BAD_REQUEST", `${name} must be given at most once`] as const
const folderRule = [400, "BAD_REQUEST", "folder_id must be a UUID"] as const
const typeRule = [
  400,
  "BAD_REQUEST",
  "type must be one of system, user, assistant, template, few-shot, chain-of-thought"
] as const

// ---- the tenants

const home = sample()
const [greeting] = home.archive.prompts
const large = prompt({ title: "Large", is_archived: true })
const megabyte = fragment("x".repeat(1024 * 1024))
const other = sample()
const [foreign] = other.archive.prompts
const refused = (over: Parameters<typeof workspace>[0]) => {
  const where = workspace(over)
  const owner = user()
  const issued = key(where.id, owner)
  return {
    key: issued.plaintext,
    archive: archive({ workspace: where, users: [owner], api_keys: [issued.stored] })
  }
}
const free = refused({ tier: "free", billing_status: "disputed" })
const unknownTier = refused({})
const disputed = refused({ billing_status: "disputed" })
const pastDue = refused({ tier: "team", billing_status: "past_due" })
const overLimit = refused({ billing_status: "over_limit" })

const bearer = (token: string) => `Authorization: Bearer ${token}`
const mine = bearer(home.keys.active.plaintext)

const resources = makeResources()
const observed: Array<Service> = []
let service: Service
let database: Awaited<ReturnType<typeof connect>>
const connect = (env: Record<string, string>) => resources.acquire(connectTo(env))

/** All that is said of what this file asks is searched for leaks. */
const start = async (...how: Parameters<typeof startObserved>): Promise<Service> => {
  const service = await startObserved(...how)
  observed.push(service)
  return service
}

const send = (target: string, lines: ReadonlyArray<string> = [mine], method = "GET") =>
  exchange(service.port, rawRequest(target, lines, method))

beforeAll(async () => {
  const env = await resources.acquire(embedded.acquire)
  service = await start({
    ...env,
    RATE_LIMIT_PER_KEY: "100000",
    RATE_LIMIT_PER_PROCESS: "100000"
  })
  database = await connect(env)
  await database.importArchive({
    ...home.archive,
    fragments: [...home.archive.fragments, megabyte],
    prompts: [
      ...home.archive.prompts,
      { ...large, fragments: Array.from({ length: 9 }, (_, position) => use(megabyte, position)) }
    ]
  })
  for (const tenant of [other, free, unknownTier, disputed, pastDue, overLimit])
    await database.importArchive(tenant.archive)
  await database.sql("update workspaces set tier = 'enterprise' where id = $1", [
    unknownTier.archive.workspace.id
  ])
})

afterAll(async () => {
  await service?.stop()
  await resources.release()
})

// ---- DESIGN.md section 4, in its order

describe("the request line and the head", () => {
  const padding = "a".repeat(17_000)
  it.each([
    ["no request line", "GARBAGE\r\n\r\n"],
    ["a target without a slash", rawRequest("?page=1")],
    ["a target beyond ASCII", rawRequest("/api/v1/prompts/\u00e9")],
    ["an unknown protocol", "GET / HTTX/1.1\r\nHost: a\r\n\r\n"],
    ["a space in a header's name", "GET /healthz HTTP/1.1\r\nHost: a\r\nA b: c\r\nConnection: close\r\n\r\n"],
    ["no Host", "GET /api/v1/prompts HTTP/1.1\r\nConnection: close\r\n\r\n"],
    ["two Hosts", "GET /api/v1/prompts HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n"],
    [
      "two lengths",
      "GET /api/v1/prompts HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
    ],
    ["a bad length", "GET /api/v1/prompts HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"]
  ])("%s: 400", async (_, request) => {
    expectError(await exchange(service.port, request), badRequest)
  })

  it.each([
    ["headers of 17 KB", rawRequest("/api/v1/prompts", [`X: ${padding}`])],
    ["a target of 17 KB", rawRequest(`/api/v1/prompts?x=${padding}`)]
  ])("%s: 431", async (_, request) => {
    expectError(await exchange(service.port, request), [
      431,
      "HEADERS_TOO_LARGE",
      "Request headers are too large"
    ])
  })

  it("an unknown expectation: 417", async () => {
    expectError(await send("/api/v1/prompts", [mine, "Expect: a-miracle"]), [
      417,
      "BAD_REQUEST",
      "Unknown expectation"
    ])
  })

  it("answers what was pipelined before a fault, then the fault", async () => {
    const answers = await exchangeAll(
      service.port,
      `GET /api/v1/prompts/${greeting!.id} HTTP/1.1\r\nHost: a\r\n${mine}\r\n\r\nGARBAGE\r\n\r\n`
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 400])
    expectError(answers[1]!, badRequest)
  })

  it.each(["gzip", "xchunked", "gzip, chunked", "identity"])(
    "a framing that is not chunks: 400 (%s)",
    async (coding) => {
      expectError(await send("/api/v1/prompts", [mine, `Transfer-Encoding: ${coding}`]), badRequest)
    }
  )

  it("a fault in a body that came with an answered request has no answer of its own", async () => {
    const head = rawRequest("/healthz", ["Transfer-Encoding: chunked"]).replace("Connection: close\r\n", "")
    const answers = await exchangeAll(service.port, `${head}not a chunk\r\n`)
    expect(answers.map(({ status }) => status)).toEqual([200])
  })

  it("an answer to a wish for another protocol is the connection's last", async () => {
    const wish = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    const answers = await exchangeAll(service.port, wish + rawRequest("/healthz"))
    expect(answers.map((answer) => [answer.status, headerOf(answer, "connection")])).toEqual([[200, "close"]])
  })

  it("who closes its half after asking is answered", async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      let text = ""
      const socket = connectSocket({ port: service.port, host: "127.0.0.1", allowHalfOpen: true })
      socket.setEncoding("utf8").on("data", (chunk) => {
        text += chunk
      })
      socket.on("end", () => resolve(text)).on("error", reject)
      socket.end("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    })
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK/)
  })

  it("HTTP/1.0 needs no Host", async () => {
    expectSuccess(await exchange(service.port, `GET /api/v1/prompts HTTP/1.0\r\n${mine}\r\n\r\n`))
  })
})

describe("the path", () => {
  it.each([
    "/",
    "/api",
    "/api/v1",
    "/api/v1/",
    "/api/v2/prompts",
    "/api/v1/prompts/",
    "/api/v1//prompts",
    "//api/v1/prompts",
    "/API/v1/prompts",
    "/api/v1/Prompts",
    "/api/v1/prompts;page=2",
    "/api/v1/prompt%73",
    "/api/v1/prompts#top",
    "/api/v1/prompts/%00",
    "/api/v1/prompts/%",
    `/api/v1/prompts/${"a".repeat(36)}%2Fresolved`,
    "/api/v1/prompts//resolved",
    `/api/v1/prompts/${newId()}/`,
    `/api/v1/prompts/${newId()}/resolved/`,
    `/api/v1/prompts/${newId()}/Resolved`,
    `/api/v1/prompts/${newId()}/versions/1/`,
    `/api/v1/prompts/${newId()}/versions//`,
    `/api/v1/prompts/${newId()}/fragments`,
    "/api/v1/prompts/../prompts",
    "/./api/v1/prompts",
    "*",
    "ftp://localhost/api/v1/prompts",
    "http://localhost",
    "/healthz/",
    "/Readyz"
  ])("%s is unknown, whoever asks and by whatever method", async (target) => {
    for (const method of ["GET", "POST", "OPTIONS"])
      for (const lines of [[], [mine]]) expectError(await send(target, lines, method), routeNotFound)
  })

  it("an authority is no path", async () => {
    expectError(await send("localhost:443", [], "CONNECT"), routeNotFound)
  })

  it.each(["http://localhost/api/v1/prompts", "HTTPS://user@else.where:99/api/v1/prompts"])(
    "the absolute form %s is reduced to its path",
    async (target) => {
      const { headers: _, ...answer } = await send(target)
      const { headers: __, ...expected } = await send("/api/v1/prompts")
      expect(answer).toEqual(expected)
    }
  )
})

describe("the method", () => {
  it.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])(
    "%s: 405 with Allow",
    async (method) => {
      for (const path of ["/api/v1/prompts", `/api/v1/prompts/${greeting!.id}/versions/1`, "/healthz"])
        for (const lines of [
          [],
          [mine],
          ["Origin: https://else.where", "Access-Control-Request-Method: GET"]
        ])
          expectError(await send(path, lines, method), notAllowed, { allow: "GET, HEAD" })
    }
  )

  it("a body that comes with a refused method does no harm", async () => {
    const request = `POST /api/v1/prompts HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET ${rawRequest("/healthz")}`
    const answers = await exchangeAll(service.port, request)
    expect(answers.map(({ status }) => status)).toEqual([405, 200])
  })

  it("HEAD is GET without the body", async () => {
    for (const path of ["/api/v1/prompts", `/api/v1/prompts/${greeting!.id}`, `/api/v1/prompts/${newId()}`]) {
      const got = await send(path)
      const head = await send(path, [mine], "HEAD")
      expect(head.body).toBe("")
      const stable = (answer: RawAnswer) =>
        answer.headers.filter(([name]) => name !== "x-request-id" && name !== "date")
      expect({ status: head.status, headers: stable(head) }).toEqual({
        status: got.status,
        headers: stable(got)
      })
    }
  })
})

describe("the Authorization header", () => {
  const token = home.keys.active.plaintext
  const path = "/api/v1/prompts"

  it.each([
    ["missing", []],
    ["empty", ["Authorization:"]],
    ["without a key", ["Authorization: Bearer"]],
    ["without a scheme", [`Authorization: ${token}`]],
    ["another scheme", [`Authorization: Basic ${token}`]],
    ["a longer scheme", [`Authorization: Bearers ${token}`]],
    ["a tab", [`Authorization: Bearer\t${token}`]],
    ["more after the key", [`Authorization: Bearer ${token} x`]],
    ["a comma list", [`Authorization: Bearer ${token}, Bearer ${token}`]],
    ["two, alike", [bearer(token), bearer(token)]],
    ["two, the first good", [bearer(token), "authorization: Basic x"]],
    ["non-ASCII", [`Authorization: Bearer ${token}\u00e9`]],
    ["quoted", [`Authorization: "Bearer ${token}"`]],
    ["only in a cookie", [`Cookie: authorization=Bearer ${token}`]],
    ["only in another header", [`X-Api-Key: ${token}`]]
  ])("%s: malformed", async (_, lines) => {
    expectError(await send(path, lines), malformed, challenge)
    expectError(await send(`${path}?api_key=${token}&access_token=${token}`, lines), malformed, challenge)
  })

  it.each([
    ["another prefix", token.replace("key_live_", "key_test_")],
    ["the prefix in capitals", token.replace("key_live_", "KEY_LIVE_")],
    ["no prefix", token.slice("key_live_".length)],
    ["half a prefix", "key_live"]
  ])("%s: not a key's format", async (_, presented) => {
    expectError(await send(path, [bearer(presented)]), badFormat, invalidToken)
  })

  it.each([
    ["nothing after the prefix", "key_live_"],
    ["a digit too few", token.slice(0, -1)],
    ["a digit too many", `${token}0`],
    ["capital digits", `key_live_${"A".repeat(64)}`],
    ["no digits", `key_live_${"g".repeat(64)}`],
    ["an unknown key", `key_live_${"0".repeat(64)}`]
  ])("%s: not a key", async (_, presented) => {
    expectError(await send(path, [bearer(presented)]), invalid, invalidToken)
  })

  it.each([
    ["revoked", home.keys.revoked, "API key has been revoked"],
    ["revoked, its owner too", home.keys.revokedOwnerMustReset, "API key has been revoked"],
    ["revoked, of no organization", home.keys.legacyRevoked, "API key has been revoked"],
    ["its owner must reset", home.keys.ownerMustReset, "API key owner must reset password"],
    [
      "its owner must reset, of no organization",
      home.keys.legacyOwnerMustReset,
      "API key owner must reset password"
    ],
    ["of no organization", home.keys.legacy, "API key has no organization assigned"]
  ])("a key that is %s", async (_, { plaintext }, message) => {
    expectError(await send(path, [bearer(plaintext)]), [401, "UNAUTHORIZED", message], invalidToken)
  })

  it.each([`bearer ${token}`, `BEARER   ${token}`, ` Bearer ${token}  `])("accepts %j", async (value) => {
    expectSuccess(await send(path, [`authorization:${value}`]))
  })
})

describe("the gates", () => {
  it.each([
    [
      "Free, before its dispute",
      free,
      [403, "API_NOT_ALLOWED", "API access requires the Solo plan or higher"]
    ],
    ["an unknown tier", unknownTier, [403, "API_NOT_ALLOWED", "API access requires the Solo plan or higher"]],
    ["disputed", disputed, [402, "DISPUTED", "Workspace has an active payment dispute"]],
    ["past due", pastDue, [402, "PAST_DUE", "Subscription is past due or over its limit"]],
    ["over its limit", overLimit, [402, "PAST_DUE", "Subscription is past due or over its limit"]]
  ] as const)(
    "%s: refused on every endpoint, before its query and its id are looked at",
    async (_, tenant, expected) => {
      const paths = [
        "/api/v1/prompts",
        "/api/v1/prompts?page=0",
        ...["", "/resolved", "/versions", "/versions/x"].map((end) => `/api/v1/prompts/x${end}`)
      ]
      for (const path of paths) expectError(await send(path, [bearer(tenant.key)]), expected)
    }
  )
})

describe("the query", () => {
  const base = "/api/v1/prompts"
  const versions = `${base}/${greeting!.id}/versions`

  it.each(
    ["page", "per_page"].flatMap((name) =>
      [
        "",
        "0",
        "-1",
        "+1",
        "01",
        "1.0",
        "1e2",
        " 1",
        "1 ",
        "x",
        "0x1",
        "٣",
        "%EF%BC%91",
        "9007199254740992",
        "99999999999999999999",
        "%",
        "%00",
        "null"
      ].map((value) => [name, value] as const)
    )
  )("%s=%s breaks the rule", async (name, value) => {
    const target = `${name}=${value.replaceAll(" ", "%20")}`
    for (const path of [base, versions])
      expectError(
        await send(`${path}?${[...target].map((c) => (c > "~" ? encodeURIComponent(c) : c)).join("")}`),
        countRule(name)
      )
  })

  it.each([
    ["page=1&page=1", once("page")],
    ["per_page=1&x=2&per_page=1", once("per_page")],
    ["tag=a&tag=a", once("tag")],
    ["tag=&t%61g=", once("tag")],
    ["type=user&type=user", once("type")],
    [`folder_id=${newId()}&folder_id=${newId()}`, once("folder_id")],
    ["folder_id=", folderRule],
    ["folder_id=x", folderRule],
    [`folder_id=%7B${newId()}%7D`, folderRule],
    [`folder_id=${newId().replaceAll("-", "")}`, folderRule],
    [`folder_id=${newId()}%00`, folderRule],
    ["type=", typeRule],
    ["type=System", typeRule],
    ["type=system%00", typeRule],
    ["type=few+shot", typeRule]
  ])("%s is refused, and no value is repeated", async (query, expected) => {
    expectError(await send(`${base}?${query}`), expected)
  })

  it.each([
    ["", 1, 20],
    ["?", 1, 20],
    ["?page=2", 2, 20],
    ["??page=2", 1, 20],
    ["?p%61ge=2", 2, 20],
    ["?per_page=100", 1, 100],
    ["?per_page=101", 1, 100],
    ["?per_page=9007199254740991", 1, 100],
    ["?page=9007199254740991&per_page=100", 9007199254740991, 100],
    ["?Page=0&PER_PAGE=0&unknown=1&unknown=2&&=&=x", 1, 20]
  ])("%s is page %i of %i", async (query, page, per_page) => {
    for (const [path, total] of [
      [base, 7],
      [versions, 3]
    ] as const) {
      const answer = await send(`${path}${query}`)
      expectSuccess(answer)
      const { data, meta } = JSON.parse(answer.body)
      expect(meta).toEqual({ page, per_page, total })
      expect(data.length).toBe(page === 1 ? Math.min(total, per_page) : 0)
    }
  })

  const titles = async (query: string) => {
    const answer = await send(`${base}?per_page=100&${query}`)
    expectSuccess(answer)
    const { data, meta } = JSON.parse(answer.body)
    expect(meta.total).toBe(data.length)
    return data.map(({ title }: { title: string }) => title)
  }

  it("filters by folder, tag and type, alone and together", async () => {
    const [support, empty] = home.archive.folders
    expect(await titles(`folder_id=${support!.id.toUpperCase()}`)).toContain("Greeting")
    expect(await titles(`folder_id=${empty!.id}`)).toEqual([])
    expect(await titles("tag=gr%C3%B6%C3%9Fe")).toEqual(["Greeting"])
    expect(await titles(`folder_id=${support!.id}&tag=production&type=system`)).toEqual(
      expect.arrayContaining(["A system prompt"])
    )
    expect(await titles("type=few-shot")).toEqual(["A few-shot prompt"])
  })

  it.each([
    "tag=",
    "tag=Production",
    "tag=nothing",
    "tag=%00",
    "tag=%ED%A0%80",
    "tag=%FF",
    "tag=%",
    "tag=%zz",
    `tag=${"a".repeat(300)}`,
    "tag='%20or%201=1--",
    `folder_id=${newId()}`
  ])("%s matches nothing, and is no fault", async (query) => {
    expect(await titles(query)).toEqual([])
  })

  it("another workspace's folder matches nothing", async () => {
    expect(await titles(`folder_id=${other.archive.folders[0]!.id}`)).toEqual([])
  })

  it("items take no parameter and mind none", async () => {
    const plain = await send(`${base}/${greeting!.id}`)
    expect((await send(`${base}/${greeting!.id}?page=0&per_page=x&type=`)).body).toBe(plain.body)
  })
})

describe("what is not there", () => {
  const hidden = [
    foreign!.id,
    newId(),
    "x",
    "0",
    greeting!.id.replaceAll("-", ""),
    `{${greeting!.id}}`,
    `${greeting!.id}0`,
    "a".repeat(300),
    "'",
    "null",
    ":id"
  ]

  it.each(hidden)("prompt %s is not found, byte for byte like any other", async (id) => {
    const base = `/api/v1/prompts/${id}`
    for (const end of ["", "/resolved", "/versions"]) expectError(await send(base + end), promptNotFound)
    for (const number of ["1", "2", "x"])
      expectError(await send(`${base}/versions/${number}`), versionNotFound)
  })

  it.each([
    "0",
    "4",
    "01",
    "+1",
    "1.0",
    "-1",
    "1e0",
    "x",
    "2147483647",
    "2147483648",
    "99999999999999999999"
  ])("version %s is not found", async (number) => {
    expectError(await send(`/api/v1/prompts/${greeting!.id}/versions/${number}`), versionNotFound)
  })
})

describe("what is there", () => {
  it("an id in any case, an archived prompt by its id", async () => {
    expectSuccess(await send(`/api/v1/prompts/${greeting!.id.toUpperCase()}`))
    const retired = home.archive.prompts.find(({ is_archived }) => is_archived)!
    const answer = await send(`/api/v1/prompts/${retired.id}`)
    expectSuccess(answer)
    expect(JSON.parse(answer.body).data).toMatchObject({ id: retired.id, is_archived: true })
  })

  it("the five endpoints", async () => {
    const base = `/api/v1/prompts/${greeting!.id}`
    const paths = ["/api/v1/prompts", base, `${base}/resolved`, `${base}/versions`, `${base}/versions/1`]
    for (const path of paths) expectSuccess(await send(path))
    expectSuccess(await send(`${base}/versions/1`), {
      data: {
        ...(({
          version_number,
          content,
          change_summary,
          change_source,
          parent_version_id,
          metadata,
          created_at,
          id
        }) => ({
          id,
          version_number,
          content,
          change_summary,
          change_source,
          parent_version_id,
          metadata,
          created_at
        }))(greeting!.versions.find(({ version_number }) => version_number === 1)!),
        prompt_id: greeting!.id
      }
    })
  })

  it("content that resolves to more than 8 MiB: 500, and a line that names the prompt", async () => {
    expectError(await send(`/api/v1/prompts/${large.id}/resolved`), [500, "INTERNAL_ERROR", "Internal error"])
    expect(service.output()).toContain(large.id)
    expectSuccess(await send(`/api/v1/prompts/${large.id}`))
  })
})

describe("conditional requests", () => {
  const path = `/api/v1/prompts/${greeting!.id}`
  it("answers 304 with the three caching headers when the ETag is named", async () => {
    const etag = headerOf(await send(path), "etag")!
    for (const value of [etag, `W/${etag}`, `"x", ${etag}`, `"a,b" ,W/${etag}`, "*", ` ${etag} `]) {
      for (const method of ["GET", "HEAD"]) {
        const answer = await send(path, [mine, `If-None-Match: ${value}`], method)
        expectCommon(answer)
        expect({ status: answer.status, body: answer.body }).toEqual({ status: 304, body: "" })
        expect(names(answer)).toEqual(sorted(ofEveryAnswer, ["cache-control", "etag", "vary"]))
        expect(Object.fromEntries(answer.headers)).toMatchObject({
          "cache-control": cacheable,
          vary: "Authorization",
          etag
        })
      }
    }
    const split = await send(path, [mine, 'If-None-Match: "x"', `If-None-Match: ${etag}`])
    expect(split.status).toBe(304)
  })

  it("answers 200 when it is not, and errors as ever", async () => {
    const etag = headerOf(await send(path), "etag")!
    for (const value of ['"x"', etag.slice(1, -1), "", etag.toLowerCase().replace(/[a-z]/, "_")])
      expectSuccess(await send(path, [mine, `If-None-Match: ${value}`]))
    expectError(await send(`/api/v1/prompts/${newId()}`, [mine, "If-None-Match: *"]), promptNotFound)
    expectError(await send(path, ["If-None-Match: *"]), malformed, challenge)
  })

  it("gives the same ETag for the same body, and another for another", async () => {
    const first = await send(path)
    expect(headerOf(await send(path), "etag")).toBe(headerOf(first, "etag"))
    expect(headerOf(await send(`${path}/resolved`), "etag")).not.toBe(headerOf(first, "etag"))
  })
})

describe("headers of no effect", () => {
  it("cookies and cross-site headers change nothing, and none is set", async () => {
    const path = `/api/v1/prompts/${greeting!.id}`
    const plain = await send(path)
    const dressed = await send(path, [
      mine,
      "Cookie: session=1; csrf=2",
      "Origin: https://else.where",
      "Referer: https://else.where/",
      "Sec-Fetch-Site: cross-site",
      "Accept: text/html",
      "Accept-Encoding: gzip",
      "Range: bytes=0-1"
    ])
    expectSuccess(dressed)
    expect(dressed.body).toBe(plain.body)
    expect(headerOf(dressed, "etag")).toBe(headerOf(plain, "etag"))
  })

  it.each(["a", "A-z_0.9", "x".repeat(128)])("an acceptable request id comes back: %s", async (id) => {
    for (const path of ["/api/v1/prompts", "/nowhere", "/healthz"])
      expect(headerOf(await send(path, [mine, `X-Request-Id: ${id}`]), "x-request-id")).toBe(id)
  })

  it.each(["", "a b", "x".repeat(129), "\u00e9", "a,b", "<script>"])(
    "any other is replaced: %s",
    async (id) => {
      expect(headerOf(await send("/nowhere", [`X-Request-Id: ${id}`]), "x-request-id")).toMatch(uuid)
    }
  )
})

describe("beside the API", () => {
  it.each(["/healthz", "/readyz"])("%s needs no key and is never stored", async (path) => {
    const answer = await send(path, [])
    expectCommon(answer)
    expect({ status: answer.status, body: answer.body }).toEqual({ status: 200, body: '{"status":"ok"}' })
    expect(headerOf(answer, "cache-control")).toBe("no-store")
  })
})

// ---- every endpoint and status; 402 and 403 stand with the gates, 429 and 503 below

/** Each endpoint, where it answers, and where what it asks for is not there. */
const item = `/api/v1/prompts/${greeting!.id}`
const nobody = `/api/v1/prompts/${newId()}`
const endpoints = [
  ["list", "/api/v1/prompts", undefined],
  ["get", item, [nobody, promptNotFound]],
  ["getResolved", `${item}/resolved`, [`${nobody}/resolved`, promptNotFound]],
  ["listVersions", `${item}/versions`, [`${nobody}/versions`, promptNotFound]],
  ["getVersion", `${item}/versions/1`, [`${item}/versions/99`, versionNotFound]]
] as const

describe.each(endpoints)("%s", (name, target, missing) => {
  it("200, and 304 to who has it", async () => {
    const answer = await send(target)
    expectSuccess(answer)
    const again = await send(target, [mine, `If-None-Match: ${headerOf(answer, "etag")}`])
    expect({ status: again.status, body: again.body }).toEqual({ status: 304, body: "" })
    expect(names(again)).toEqual(sorted(ofEveryAnswer, ["cache-control", "etag", "vary"]))
  })

  if (name === "list" || name === "listVersions")
    it("400", async () => {
      expectError(await send(`${target}?page=0`), countRule("page"))
    })

  it("401, 405 and 431", async () => {
    expectError(await send(target, []), malformed, challenge)
    expectError(
      await send(target, [bearer(home.keys.revoked.plaintext)]),
      [401, "UNAUTHORIZED", "API key has been revoked"],
      invalidToken
    )
    expectError(await send(target, [mine], "POST"), notAllowed, { allow: "GET, HEAD" })
    expectError(await send(target, [mine, `X: ${"a".repeat(17_000)}`]), [
      431,
      "HEADERS_TOO_LARGE",
      "Request headers are too large"
    ])
  })

  if (missing !== undefined)
    it("404", async () => {
      const [path, expected] = missing
      expectError(await send(path), expected)
    })

  it("500, without a word of what is wrong", async () => {
    // Not of what is kept ready: nobody has asked for this before.
    const unasked = `${target}?${newId()}`
    await database.sql("alter table prompts rename column title to gone")
    await database.sql("alter table prompt_versions rename column change_summary to gone")
    try {
      expectError(await send(unasked), [500, "INTERNAL_ERROR", "Internal error"])
    } finally {
      await database.sql("alter table prompts rename column gone to title")
      await database.sql("alter table prompt_versions rename column gone to change_summary")
    }
    expectSuccess(await send(unasked))
  })
})

// ---- limits and outages, each with a service of its own

describe("rate limits", () => {
  it("429 names the limit, and what does not count does not", async () => {
    const env = await resources.acquire(embedded.acquire)
    const limited = await start({
      ...env,
      RATE_LIMIT_PER_KEY: "3",
      RATE_LIMIT_PER_PROCESS: "5"
    })
    try {
      const tenant = sample()
      const poor = refused({ tier: "free" })
      const direct = await connect(env)
      await direct.importArchive(tenant.archive)
      await direct.importArchive(poor.archive)
      const ask = (token: string, target = "/api/v1/prompts", method = "GET") =>
        exchange(limited.port, rawRequest(target, [bearer(token)], method))
      // The test needs the rest of a clock minute for itself.
      const left = 60_000 - (Date.now() % 60_000)
      if (left < 15_000) await new Promise((resolve) => setTimeout(resolve, left))
      const first = tenant.keys.active.plaintext
      const second = tenant.keys.second.plaintext
      for (const token of [poor.key, tenant.keys.revoked.plaintext, `key_live_${"0".repeat(64)}`, "x"])
        for (let i = 0; i < 4; i++) expect((await ask(token)).status).toBeGreaterThanOrEqual(401)
      expect((await ask(first)).status).toBe(200)
      expect((await ask(first, "/api/v1/prompts?page=0")).status).toBe(400)
      expect((await ask(first, "/api/v1/prompts/x", "HEAD")).status).toBe(404)
      const denied = await ask(first)
      const seconds = Number(headerOf(denied, "retry-after"))
      expect(seconds).toBeGreaterThanOrEqual(1)
      expect(seconds).toBeLessThanOrEqual(60)
      expectError(denied, [429, "RATE_LIMITED", "Rate limit exceeded"], {
        "retry-after": String(seconds),
        "ratelimit-policy": '"key";q=3;w=60',
        ratelimit: `"key";r=0;t=${seconds}`
      })
      expect((await ask(second)).status).toBe(200)
      expect((await ask(second)).status).toBe(200)
      const full = await ask(second)
      for (const [, target] of endpoints) expect((await ask(second, target)).status).toBe(429)
      const rest = headerOf(full, "retry-after")!
      expectError(full, [429, "RATE_LIMITED", "Rate limit exceeded"], {
        "retry-after": rest,
        "ratelimit-policy": '"process";q=5;w=60',
        ratelimit: `"process";r=0;t=${rest}`
      })
      expect((await exchange(limited.port, rawRequest("/healthz"))).status).toBe(200)
    } finally {
      await limited.stop()
    }
  })
})

describe("without its database", () => {
  it("answers 503 to what needs it and everything else as ever", async () => {
    const cut = await start(
      {
        DATABASE_URL: "postgres://postgres@127.0.0.1:9/none"
      },
      "/healthz"
    )
    try {
      const ask = (target: string, lines: ReadonlyArray<string> = [mine], method = "GET") =>
        exchange(cut.port, rawRequest(target, lines, method))
      const unavailable = [503, "SERVICE_UNAVAILABLE", "Service unavailable"] as const
      for (const [, target] of endpoints) expectError(await ask(target), unavailable, { "retry-after": "1" })
      expectError(await ask("/readyz", []), unavailable, { "retry-after": "1" })
      expect((await ask("/healthz", [])).status).toBe(200)
      expectError(await ask("/nowhere"), routeNotFound)
      expectError(await ask("/api/v1/prompts", [mine], "POST"), notAllowed, { allow: "GET, HEAD" })
      expectError(await ask("/api/v1/prompts", []), malformed, challenge)
      expectError(await ask("/api/v1/prompts", [bearer("x")]), badFormat, invalidToken)
      expectError(await ask("/api/v1/prompts", [bearer("key_live_0")]), invalid, invalidToken)
    } finally {
      expect(await cut.stop()).toBe(0)
    }
  })
})

it("what is searched for leaks has every status of the contract", () => {
  const lines = observed.map((service) => service.output()).join("")
  const statuses = new Set([...lines.matchAll(/"status":(\d+)/g)].map(([, status]) => Number(status)))
  expect([...statuses].toSorted((a, b) => a - b)).toEqual([
    ...[200, 304, 400, 401, 402, 403, 404, 405, 417, 429, 431, 500, 503]
  ])
})
