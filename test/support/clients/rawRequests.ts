import type { sample } from "../archives.ts"

/**
 * Returns a function that generates raw HTTP requests: valid ones, invalid ones and noise, against the prompts and
 * keys of `tenant`. The same seed gives the same requests in the same order (mulberry32).
 */
export const makeRequestGenerator = (tenant: ReturnType<typeof sample>, seed: number): (() => string) => {
  const ids = tenant.archive.prompts.map(({ id }) => id as string)
  let state = seed
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (n: number) => Math.floor(random() * n)
  const one = <A>(items: ReadonlyArray<A>): A => items[below(items.length)]!
  const some = <A>(max: number, make: () => A): Array<A> => Array.from({ length: below(max + 1) }, make)

  const bytes = () => some(12, () => String.fromCharCode(below(256))).join("")
  const visible = () => some(12, () => String.fromCharCode(33 + below(94))).join("")
  const escaped = () => some(6, () => `%${below(256).toString(16).padStart(2, "0")}`).join("")
  const junk = () =>
    one([bytes, visible, visible, escaped, () => "a".repeat(below(400)), () => "%", () => ""])()

  const segment = () =>
    one([() => one(ids), () => one(ids).toUpperCase(), junk, () => "1", () => "versions", () => "resolved"])()
  const path = () =>
    one([
      () => "/api/v1/prompts",
      () => `/api/v1/prompts/${segment()}`,
      () => `/api/v1/prompts/${segment()}/resolved`,
      () => `/api/v1/prompts/${segment()}/versions`,
      () => `/api/v1/prompts/${segment()}/versions/${one(["0", "1", "2", "99999999999", junk()])}`,
      () => one(["/healthz", "/readyz", "/nowhere", "/API/v1/prompts", "//api/v1/prompts"]),
      () => `/${some(5, segment).join("/")}`,
      () => `http://${junk()}/api/v1/prompts`,
      junk
    ])()
  const value = () =>
    one([
      junk,
      () => String(below(1000)),
      () => "-1",
      () => "1e9",
      () => "system",
      () => one(ids),
      () => "%00",
      () => "production"
    ])()
  const query = () =>
    one([
      () => "",
      () =>
        `?${some(4, () => `${one(["page", "per_page", "folder_id", "tag", "type", junk()])}=${value()}`).join("&")}`,
      () => `?${junk()}`
    ])()
  const authorization = () =>
    one([
      () => [`Authorization: Bearer ${tenant.keys.active.plaintext}`],
      () => [`Authorization: Bearer ${tenant.keys.active.plaintext}`],
      () => [`Authorization: Bearer ${one(Object.values(tenant.keys)).plaintext}`],
      () => [`Authorization: ${one(["Bearer", "bearer", "Basic", junk()])} ${junk()}`],
      () => [],
      () => some(3, () => `Authorization: ${junk()}`)
    ])()
  const header = () =>
    one([
      () => `If-None-Match: ${one(["*", '"x"', 'W/"x"', junk()])}`,
      () => `X-Request-Id: ${junk()}`,
      () => `Cookie: ${junk()}`,
      () => `${visible().replaceAll(/[^A-Za-z]/g, "") || "X"}: ${junk()}`,
      () => bytes(),
      () => "Accept-Encoding: gzip",
      () => "Expect: 100-continue",
      () => "Upgrade: websocket"
    ])()
  const method = () =>
    one(["GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "DELETE", visible(), junk()])

  return () => {
    const lines = [...authorization(), ...some(3, header)].map((line) => line.replaceAll(/[\r\n]/g, ""))
    return [
      `${method()} ${path()}${query()} HTTP/1.1`,
      "Host: localhost",
      "Connection: close",
      ...lines,
      "",
      ""
    ].join("\r\n")
  }
}
