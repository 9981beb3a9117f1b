import { execFileSync, spawn } from "node:child_process"
import { chownSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { clusterPath, freshCluster, makeSpawnOptions } from "../../support/database/cluster.ts"
import { connectTo } from "../../support/database/connection.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { freePort } from "../../support/network/ports.ts"
import { endProcess } from "../../support/programs/startProgram.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const deploy = join(import.meta.dirname, "../../../deploy")
/** The test passes this text to the shell, because the user that runs PostgreSQL cannot always read the checkout. */
const standbyScript = readFileSync(join(deploy, "compose/standby.sh"), "utf8")

const acquire = makeAcquire()
const home = makeTestDirectory("compose-")

it("the scripts in deploy/compose create the roles, let HAProxy connect, and create a standby that follows the primary", async () => {
  const primary = await acquire(freshCluster)
  await primary.start()
  const { sql } = await acquire(connectTo({ DATABASE_URL: primary.url }))
  const [{ data }] = (await sql("select current_setting('data_directory') as data")) as [{ data: string }]
  const { port } = new URL(primary.url)
  execFileSync("sh", [join(deploy, "compose/primary.sh")], {
    env: {
      PATH: clusterPath,
      PGHOST: "127.0.0.1",
      PGPORT: port,
      PGDATA: data,
      POSTGRES_USER: "postgres",
      POSTGRES_DB: "postgres",
      OWNER_PASSWORD: "owner",
      SERVICE_PASSWORD: "service",
      ADMIN_PASSWORD: "admin",
      STANDBY_PASSWORD: "s3cret",
      ROLES_FILE: join(deploy, "roles.sql")
    },
    stdio: "ignore"
  })
  // The primary of the test trusts local connections, so the test compares the stored passwords.
  const roles = `select array_agg(rolname::text order by rolname) as names,
    count(distinct rolpassword)::int as passwords from pg_authid where rolpassword is not null`
  const names = ["prompts_admin", "prompts_owner", "prompts_service", "standby"]
  expect(await sql(roles)).toEqual([{ names, passwords: 4 }])
  const first = `select database, user_name, auth_method from pg_hba_file_rules order by line_number limit 1`
  expect(await sql(first)).toEqual([{ database: ["postgres"], user_name: ["haproxy"], auth_method: "trust" }])

  const user = makeSpawnOptions()
  const copy = join(home, "data")
  mkdirSync(copy)
  if (user.uid !== undefined) for (const path of [home, copy]) chownSync(path, user.uid, user.gid!)
  const standbyPort = await freePort()
  const url = `postgres://postgres@127.0.0.1:${standbyPort}/postgres`
  const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${home}`]
  for (const round of [1, 2]) {
    const args = ["-p", String(standbyPort), ...settings.flatMap((setting) => ["-c", setting])]
    const standby = spawn("sh", ["-c", standbyScript, "standby.sh", ...args], {
      ...user,
      cwd: home,
      env: {
        PATH: clusterPath,
        PGDATA: copy,
        PRIMARY_HOST: "127.0.0.1",
        PRIMARY_PORT: port,
        PGPASSWORD: "s3cret"
      },
      stdio: "ignore"
    })
    try {
      await sql(`create table round_${round} ()`)
      const table = `round_${round}`
      const tables = `select pg_is_in_recovery() as standby, to_regclass('${table}')::text as table`
      const find = async () => (await acquire(connectTo({ DATABASE_URL: url }))).sql(tables).catch(() => [])
      await expect.poll(find, { timeout: 20_000, interval: 200 }).toEqual([{ standby: true, table }])
      const slots = `select slot_name::text as slot, active, current_setting('max_slot_wal_keep_size') as kept
        from pg_replication_slots`
      expect(await sql(slots)).toEqual([{ slot: "standby", active: true, kept: "4GB" }])
    } finally {
      await endProcess(standby, "SIGQUIT")
    }
  }
})
