import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setDefaultCACertificates } from "node:tls"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeDatabaseServer } from "../../../src/adapters/outbound/postgres/connection/DatabaseServer.ts"
import { makePoolConfig } from "../../../src/adapters/outbound/postgres/driver/PoolConfig.ts"
import { describeSqlError } from "../../../src/adapters/outbound/postgres/driver/SqlErrors.ts"
import { type Cluster, freshCluster } from "../../support/database/cluster.ts"
import { makeResources } from "../../support/database.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const openssl = (directory: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("openssl", args, { cwd: directory, encoding: "utf8", stdio: "pipe" })

describe("a URL with several hosts and TLS", () => {
  const resources = makeResources()
  const directory = makeTestDirectory("tls-")
  let authority: string
  /** A server whose certificate is for localhost. */
  let named: Cluster
  /** A server whose certificate is for 127.0.0.1. */
  let numbered: Cluster

  const query = (url: string, statement: string) =>
    PgConnection.make(makePoolConfig(makeDatabaseServer(Redacted.make(url)).config)).pipe(
      Effect.flatMap((connection) => connection.query(statement, [], false)),
      Effect.scoped
    )
  const run = (url: string, statement: string) => Effect.runPromise(query(url, statement))
  /**
   * Connects to a URL. Returns the port of the server and whether the connection is encrypted, or the error message.
   */
  const connect = (url: string): Promise<unknown> =>
    Effect.runPromise(
      Effect.match(
        query(
          url,
          "select current_setting('port') as port, ssl from pg_stat_ssl where pid = pg_backend_pid()"
        ),
        { onSuccess: ({ rows }) => rows[0], onFailure: describeSqlError }
      )
    )

  const portOf = ({ url }: Cluster): string => new URL(url).port
  const toUrl = (...servers: ReadonlyArray<readonly [host: string, cluster: Cluster]>): string =>
    `postgres://postgres@${servers.map(([host, cluster]) => `${host}:${portOf(cluster)}`)}/postgres`

  /** Turns TLS on with a certificate for one name. The authority of the test signs the certificate. */
  const enableTls = async ({ url }: Cluster, name: string): Promise<void> => {
    writeFileSync(join(directory, "name.txt"), `subjectAltName=${name}`)
    openssl(
      directory,
      "req",
      "-new",
      "-nodes",
      "-subj",
      "/CN=server",
      "-keyout",
      "server.key",
      "-out",
      "server.csr"
    )
    const sign = ["-CA", "authority.crt", "-CAkey", "authority.key", "-days", "2", "-extfile", "name.txt"]
    openssl(directory, "x509", "-req", "-in", "server.csr", ...sign, "-out", "server.crt")
    // The user that runs the server must own the files, so the server writes them.
    for (const file of ["server.key", "server.crt"]) {
      const pem = readFileSync(join(directory, file), "utf8").trimEnd()
      await run(
        url,
        `copy (select unnest(string_to_array('${pem}', E'\\n'))) to program 'umask 077 && cat > ${file}'`
      )
    }
    await run(url, "alter system set ssl = on")
    await run(url, "select pg_reload_conf()")
  }

  beforeAll(async () => {
    const subject = ["-subj", "/CN=authority", "-days", "2"]
    openssl(
      directory,
      "req",
      "-new",
      "-x509",
      "-nodes",
      ...subject,
      "-keyout",
      "authority.key",
      "-out",
      "authority.crt"
    )
    authority = readFileSync(join(directory, "authority.crt"), "utf8")
    named = await resources.acquire(freshCluster)
    numbered = await resources.acquire(freshCluster)
    await Promise.all([named.start(), numbered.start()])
    await enableTls(named, "DNS:localhost")
    await enableTls(numbered, "IP:127.0.0.1")
  })
  afterAll(async () => {
    setDefaultCACertificates([])
    await resources.release()
  })

  it("a certificate of an unknown authority is rejected for every host of the URL", async () => {
    setDefaultCACertificates([])
    const url = toUrl(["localhost", named], ["127.0.0.1", numbered])
    expect(await connect(`${url}?sslmode=verify-full`)).toMatch(
      /\(localhost:\d+: unable to verify the first certificate.*; 127.0.0.1:\d+: unable to verify the first certificate/
    )
  })

  it.each(["require", "verify-ca", "verify-full"])(
    "with sslmode=%s, a host is skipped if the certificate of its server is not for the name of the host",
    async (mode) => {
      setDefaultCACertificates([authority])
      const connectTo = (...servers: ReadonlyArray<readonly [host: string, cluster: Cluster]>) =>
        connect(`${toUrl(...servers)}?sslmode=${mode}&target_session_attrs=read-write`)
      const first = { port: portOf(named), ssl: true }
      const second = { port: portOf(numbered), ssl: true }
      expect(await connectTo(["localhost", named])).toEqual(first)
      expect(await connectTo(["localhost", named], ["127.0.0.1", numbered])).toEqual(first)
      expect(await connectTo(["127.0.0.1", numbered], ["localhost", named])).toEqual(second)
      // The server of the first host has the certificate for localhost, so this host is skipped.
      expect(await connectTo(["127.0.0.1", named], ["127.0.0.1", numbered])).toEqual(second)
      expect(await connectTo(["localhost", numbered], ["localhost", named])).toEqual(first)
      expect(await connectTo(["127.0.0.1", named], ["localhost", numbered])).toMatch(
        /127.0.0.1:\d+: Hostname\/IP does not match certificate's altnames: .*; localhost:\d+: Hostname\/IP does not match/
      )
      expect(await connectTo(["127.0.0.1", named])).toMatch(/Hostname\/IP does not match/)
    }
  )
})
