import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setDefaultCACertificates } from "node:tls"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { beforeAll, describe, expect, it } from "vitest"
import { Database } from "../../../src/adapters/outbound/postgres/Database.ts"
import { migrations } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { freshCluster } from "../../support/database/cluster.ts"
import { run } from "../../support/service.ts"
import { readTable } from "../../docs/markdown.ts"
import { makeAcquire } from "../../support/testDatabase.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const document = "docs/deployment.md"

it("docs/deployment.md lists every migration", () => {
  const listed = readTable(document, "Upgrade and roll back").map(([number, name]) => [number, name])
  expect(listed).toEqual(migrations.map(({ name }, index) => [String(index + 1), name]))
})

describe("docs/deployment.md, TLS", () => {
  const acquire = makeAcquire()
  const directory = makeTestDirectory("tls-")
  let url: URL

  beforeAll(async () => {
    const cluster = await acquire(freshCluster)
    await cluster.start()
    url = new URL(cluster.url)
  })

  const toUrl = (mode: string, host = "localhost"): string => {
    const result = new URL(url)
    result.hostname = host
    if (mode !== "none") result.searchParams.set("sslmode", mode)
    return result.href
  }

  const query = <A extends object>(text: string, databaseUrl = url.href): Promise<ReadonlyArray<A>> =>
    Effect.runPromise(
      Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe<A>(text)).pipe(
        Effect.provide(Database.layer({ url: Redacted.make(databaseUrl) }))
      )
    )

  /** Turns TLS on with a self-signed certificate for localhost, and returns the certificate. */
  const enableTls = async (): Promise<string> => {
    // The user that runs the server must own the key, so the server creates the key.
    await query(`copy (select) to program 'openssl req -new -x509 -nodes -days 2 -subj /CN=localhost \
      -addext subjectAltName=DNS:localhost -keyout server.key -out server.crt 2>&1'`)
    await query("alter system set ssl = on")
    await query("select pg_reload_conf()")
    await expect.poll(() => query("show ssl")).toEqual([{ ssl: "on" }])
    const [row] = await query<{ readonly pem: string }>("select pg_read_file('server.crt') as pem")
    return row!.pem
  }

  const describeConnection = async (databaseUrl: string): Promise<string> => {
    const select = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
    const rows = await query<{ readonly ssl: boolean }>(select, databaseUrl).catch(() => undefined)
    return rows === undefined ? "no connection" : rows[0]!.ssl ? "encrypted" : "not encrypted"
  }

  it("docs/deployment.md states for every sslmode whether connections are encrypted, and how to trust a private authority", async () => {
    const documented = readTable(document, "TLS").flatMap(([names, ...cells]) =>
      names!.match(/none|(?<=`)[a-z-]+(?=`)/g)!.map((mode) => [mode, ...cells])
    )
    const describeModes = () => Promise.all(documented.map(([mode]) => describeConnection(toUrl(mode!))))
    const withoutTls = await describeModes()
    const certificate = await enableTls()
    const unverified = await describeModes()
    setDefaultCACertificates([certificate])
    const verified = await describeModes()
    const found = documented.map(([mode], index) => [
      mode,
      verified[index],
      withoutTls[index],
      unverified[index]
    ])
    expect(found).toEqual(documented)
    // The certificate is for localhost, not for 127.0.0.1.
    for (const mode of ["require", "verify-ca", "verify-full"])
      expect(await describeConnection(toUrl(mode, "127.0.0.1"))).toBe("no connection")

    const file = join(directory, "authority.crt")
    writeFileSync(file, certificate)
    const DATABASE_URL = toUrl("require")
    const args = ["migrate", "--status", "--json"]
    expect(await run(args, { DATABASE_URL })).toMatchObject({ code: 1, stdout: "" })
    const { stdout } = await run(args, { DATABASE_URL, NODE_EXTRA_CA_CERTS: file })
    expect(JSON.parse(stdout)).toMatchObject({ version: 0 })
  })
})
