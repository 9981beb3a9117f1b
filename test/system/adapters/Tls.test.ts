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

describe("connections with TLS", () => {
  const resources = makeResources()
  const directory = makeTestDirectory("tls-")
  const openssl = (args: string) =>
    execFileSync("openssl", args.split(" "), { cwd: directory, stdio: "pipe" })
  let authority: string
  /** A server whose certificate is for localhost. */
  let cluster: Cluster

  const query = (url: string, statement: string) =>
    PgConnection.make(makePoolConfig(makeDatabaseServer(Redacted.make(url)).config)).pipe(
      Effect.flatMap((connection) => connection.query(statement, [], false)),
      Effect.scoped
    )
  const run = (statement: string) => Effect.runPromise(query(cluster.url, statement))
  /** Connects to the server by a name. Returns whether the connection is encrypted, or the error message. */
  const connect = (host: string, mode: string): Promise<unknown> => {
    const url = `${cluster.url.replace("127.0.0.1", host)}?sslmode=${mode}`
    return Effect.runPromise(
      Effect.match(query(url, "select ssl from pg_stat_ssl where pid = pg_backend_pid()"), {
        onSuccess: ({ rows }) => rows[0]!.ssl,
        onFailure: describeSqlError
      })
    )
  }

  beforeAll(async () => {
    cluster = await resources.acquire(freshCluster)
    await cluster.start()
    openssl("req -new -x509 -nodes -subj /CN=authority -days 2 -keyout authority.key -out authority.crt")
    authority = readFileSync(join(directory, "authority.crt"), "utf8")
    writeFileSync(join(directory, "name.txt"), "subjectAltName=DNS:localhost")
    openssl("req -new -nodes -subj /CN=server -keyout server.key -out server.csr")
    const sign = "-CA authority.crt -CAkey authority.key -days 2 -extfile name.txt"
    openssl(`x509 -req -in server.csr ${sign} -out server.crt`)
    // The user that runs the server must own the files, so the server writes them.
    for (const file of ["server.key", "server.crt"]) {
      const pem = readFileSync(join(directory, file), "utf8").trimEnd()
      await run(
        `copy (select unnest(string_to_array('${pem}', E'\\n'))) to program 'umask 077 && cat > ${file}'`
      )
    }
    await run("alter system set ssl = on")
    await run("select pg_reload_conf()")
  })
  afterAll(async () => {
    setDefaultCACertificates([])
    await resources.release()
  })

  it("with sslmode=verify-full, a certificate of an unknown authority is rejected", async () => {
    setDefaultCACertificates([])
    expect(await connect("localhost", "verify-full")).toMatch(/^unable to verify the first certificate/)
  })

  it.each(["require", "verify-ca", "verify-full"])(
    "with sslmode=%s, a connection is encrypted, and rejected if the certificate of the server is not for the host of the URL",
    async (mode) => {
      setDefaultCACertificates([authority])
      expect(await connect("localhost", mode)).toBe(true)
      expect(await connect("127.0.0.1", mode)).toMatch(/^Hostname\/IP does not match certificate's altnames/)
    }
  )
})
