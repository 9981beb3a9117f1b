import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { programPath } from "../programs/startProgram.ts"
import { toolsDirectory } from "../programs/tools.ts"

/** The programs that the system tests start, with the packages of Debian that contain them. */
const packages: Readonly<Record<string, string>> = {
  buildah: "buildah",
  chromium: "chromium",
  curl: "curl",
  haproxy: "haproxy",
  ip: "iproute2",
  nginx: "nginx-light",
  openssl: "openssl",
  pgbouncer: "pgbouncer",
  promtool: "prometheus",
  psql: "postgresql-client",
  python3: "python3",
  "redis-server": "redis-server",
  "systemd-analyze": "systemd",
  varnishd: "varnish"
}

const isOnPath = (program: string): boolean =>
  programPath.split(delimiter).some((directory) => existsSync(join(directory, program)))

/**
 * Fails if a program for the system tests is missing, or if the tests do not run as root. The error for missing
 * programs contains the command that installs them.
 */
export const setup = (): void => {
  const missing = Object.entries(packages).flatMap(([program, name]) => (isOnPath(program) ? [] : [name]))
  if (!existsSync("/usr/lib/postgresql")) missing.push("postgresql")
  const commands = [
    ...(missing.length === 0 ? [] : [`apt-get install --no-install-recommends ${missing.join(" ")}`]),
    ...(existsSync(join(toolsDirectory, "node_modules")) ? [] : ["npm ci --prefix test/tools"])
  ]
  if (commands.length > 0)
    throw new Error(`The system tests need more programs. Run: ${commands.join(" && ")}`)
  if (process.getuid?.() !== 0) throw new Error("The system tests build images, so they need root.")
}
