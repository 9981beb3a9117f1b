import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setDefaultCACertificates } from "node:tls"
import { expect, it } from "vitest"
import { migrations } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { readTable } from "../../docs/markdown.ts"
import { freshCluster } from "../../support/database/cluster.ts"
import { connectTo } from "../../support/database/connection.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { run } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const document = "docs/deployment.md"

it("docs/deployment.md lists every migration", () => {
  const listed = readTable(document, "Upgrade and roll back").map(([number, name]) => [number, name])
  expect(listed).toEqual(migrations.map(({ name }, index) => [String(index + 1), name]))
})

const acquire = makeAcquire()

/** Returns the first value of the result of a query. */
const query = async (url: string, text: string): Promise<unknown> => {
  const { sql } = await acquire(connectTo({ DATABASE_URL: url }))
  const [row = {}] = await sql(text)
  return Object.values(row as object)[0]
}

/** Turns TLS on with a self-signed certificate for localhost, and returns the certificate. */
const enableTls = async (url: string): Promise<string> => {
  // The user that runs the server must own the key, so the server creates the key.
  const create = `openssl req -new -x509 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout server.key -out server.crt 2>&1`
  for (const text of [
    `copy (select) to program '${create}'`,
    "alter system set ssl = on",
    "select pg_reload_conf()"
  ])
    await query(url, text)
  await expect.poll(() => query(url, "show ssl")).toBe("on")
  return String(await query(url, "select pg_read_file('server.crt')"))
}

it("docs/deployment.md states for every sslmode whether a connection is encrypted, and how to trust a private certificate authority", async () => {
  const cluster = await acquire(freshCluster)
  await cluster.start()
  const toUrl = (mode: string, host = "localhost") => {
    const url = cluster.url.replace("127.0.0.1", host)
    return mode === "none" ? url : `${url}?sslmode=${mode}`
  }
  const describeConnection = async (url: string) => {
    const select = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
    const isEncrypted = await query(url, select).catch(() => undefined)
    return isEncrypted === undefined ? "no connection" : isEncrypted ? "encrypted" : "not encrypted"
  }
  const documented = readTable(document, "TLS").flatMap(([names, ...cells]) =>
    names!.match(/none|(?<=`)[a-z-]+(?=`)/g)!.map((mode) => [mode, ...cells])
  )
  const describeModes = () => Promise.all(documented.map(([mode]) => describeConnection(toUrl(mode!))))
  const withoutTls = await describeModes()
  const certificate = await enableTls(cluster.url)
  const unverified = await describeModes()
  setDefaultCACertificates([certificate])
  const verified = await describeModes()
  const found = documented.map(([mode], n) => [mode, verified[n], withoutTls[n], unverified[n]])
  expect(found).toEqual(documented)
  // The certificate is for localhost, not for 127.0.0.1.
  for (const mode of ["require", "verify-ca", "verify-full"])
    expect(await describeConnection(toUrl(mode, "127.0.0.1"))).toBe("no connection")

  const file = join(makeTestDirectory("tls-"), "authority.crt")
  writeFileSync(file, certificate)
  const DATABASE_URL = toUrl("require")
  const args = ["migrate", "--status", "--json"]
  expect(await run(args, { DATABASE_URL })).toMatchObject({ code: 1, stdout: "" })
  const { stdout } = await run(args, { DATABASE_URL, NODE_EXTRA_CA_CERTS: file })
  expect(JSON.parse(stdout)).toMatchObject({ version: 0 })
})
