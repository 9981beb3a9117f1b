import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, it } from "vitest"
import { programVersion } from "../../../src/application/ProgramVersion.ts"
import { sample } from "../../support/archives.ts"
import { connectTo, postgresEnv } from "../../support/database/connection.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { freePort } from "../../support/network/ports.ts"
import { buildImage, type Image } from "../../support/programs/containerImage.ts"

const manifest = JSON.parse(readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8"))

const acquire = makeAcquire()
const { archive, keys } = sample()
let image: Image
let database: Record<string, string>

beforeAll(async () => {
  image = await acquire(buildImage)
  database = await acquire(postgresEnv)
}, 300_000)

const runCommand = async (command: ReadonlyArray<string>, env: Readonly<Record<string, string>>) => {
  const child = image.run(command, env)
  let output = ""
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (chunk) => (output += chunk))
  const [code] = await once(child, "close")
  return { code, output }
}

it("deploy/Containerfile builds an image that has a version, a user without privileges and no shell", () => {
  const { User, Cmd, Labels, ExposedPorts } = image.config
  expect({ User, Cmd, ports: Object.keys(ExposedPorts) }).toEqual({
    User: "65532:65532",
    Cmd: ["serve"],
    ports: ["3000/tcp", "9464/tcp"]
  })
  expect(Labels).toMatchObject({
    "org.opencontainers.image.title": manifest.name,
    "org.opencontainers.image.description": manifest.description,
    "org.opencontainers.image.version": programVersion
  })
  expect(["bin", "usr", "sbin"].filter((name) => existsSync(join(image.files, name)))).toEqual([])
  expect(readdirSync(join(image.files, "app")).toSorted()).toEqual(["dist", "node_modules", "package.json"])
  // A development dependency that no dependency needs.
  expect(existsSync(join(image.files, "app/node_modules/vitest"))).toBe(false)
})

it("the image migrates a database and serves the API, without privileges and with a read-only root file system", async () => {
  const { Entrypoint, Cmd, Healthcheck } = image.config
  const [kind, ...healthCommand] = Healthcheck.Test
  expect(kind).toBe("CMD")
  expect(await runCommand([...Entrypoint, "migrate"], database)).toMatchObject({ code: 0 })
  await (await acquire(connectTo(database))).importArchive(archive)

  const port = await freePort()
  const env = { ...database, PORT: String(port), METRICS_PORT: String(await freePort()) }
  expect((await runCommand(healthCommand, env)).code).toBe(1)
  const service = image.run([...Entrypoint, ...Cmd], env)
  const exited = once(service, "exit")
  const headers = { authorization: `Bearer ${keys.active.plaintext}` }
  const readStatus = async () => (await fetch(`http://127.0.0.1:${port}/api/v1/prompts`, { headers })).status
  try {
    await expect.poll(readStatus, { timeout: 20_000 }).toBe(200)
    expect((await runCommand(healthCommand, env)).code).toBe(0)
    const status = readFileSync(`/proc/${service.pid}/status`, "utf8")
    expect(/^Uid:\t(.*)$/m.exec(status)![1]).toBe("65532\t65532\t65532\t65532")
    expect(/^CapEff:\t(.*)$/m.exec(status)![1]).toBe("0000000000000000")
    const mounts = readFileSync(`/proc/${service.pid}/mountinfo`, "utf8")
    expect(mounts).toMatch(/^\d+ \d+ \S+ \S+ \/ ro,/m)
  } finally {
    service.kill("SIGTERM")
  }
  expect(await exited).toEqual([0, null])
  const size = Number(execFileSync("du", ["-sm", image.files], { encoding: "utf8" }).split("\t")[0])
  expect(size).toBeLessThan(300)
}, 60_000)
