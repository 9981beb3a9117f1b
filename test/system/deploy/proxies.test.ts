import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { programPath } from "../../support/programs/startProgram.ts"

const deploy = join(import.meta.dirname, "../../../deploy")

/**
 * Runs a script as on a new machine with Debian's packages: free ports, empty directories, and a certificate like that
 * of the package ssl-cert. Changes of files disappear at the end. Returns the lines of the output.
 */
const runOnNewMachine = (script: string): ReadonlyArray<string> => {
  const prepare = `set -eu
    ip link set lo up
    for directory in /etc/nginx/conf.d /etc/haproxy /etc/ssl/certs /etc/ssl/private /var/cache /var/log /run; do
      mount --types tmpfs tmpfs $directory
    done
    mkdir /var/log/nginx
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
      -keyout /etc/ssl/private/ssl-cert-snakeoil.key -out /etc/ssl/certs/ssl-cert-snakeoil.pem 2>/dev/null
    read_status() { curl --silent --show-error --insecure --output /dev/null --write-out '%{http_code} %{http_version}\\n' "$1"; }
    `
  return execFileSync("unshare", ["--mount", "--net", "sh", "-c", prepare + script], {
    cwd: deploy,
    env: { PATH: programPath },
    encoding: "utf8"
  })
    .trim()
    .split("\n")
}

// No service runs, so a running proxy responds with its own error.

it("with the unmodified deploy/nginx.conf, Debian's nginx starts, creates the directory of its cache, and serves TLS", () => {
  expect(
    runOnNewMachine(`
      cp nginx.conf /etc/nginx/conf.d/prompt-retrieval.conf
      nginx
      read_status https://127.0.0.1/api/v1/prompts
      nginx -s stop
      ls /var/cache`)
  ).toEqual(["502 2", "nginx-prompt-retrieval"])
})

it("with the unmodified deploy/haproxy.cfg, Debian's HAProxy starts and serves TLS", () => {
  expect(
    runOnNewMachine(`
      cat /etc/ssl/certs/ssl-cert-snakeoil.pem /etc/ssl/private/ssl-cert-snakeoil.key |
        install --mode=600 /dev/stdin /etc/haproxy/prompt-retrieval.pem
      cp haproxy.cfg /etc/haproxy/haproxy.cfg
      haproxy -D -f /etc/haproxy/haproxy.cfg -p /run/haproxy.pid 2>&1
      read_status https://127.0.0.1/api/v1/prompts
      kill "$(cat /run/haproxy.pid)"`)
  ).toEqual(["503 2"])
})

it.each([
  ["haproxy.cfg", /timeout client +(\d+)s/],
  ["haproxy.cfg", /timeout server +(\d+)s/],
  ["compose/haproxy.cfg", /timeout client +(\d+)s/],
  ["compose/haproxy.cfg", /timeout server +(\d+)s/],
  ["nginx.conf", /proxy_read_timeout (\d+)s/],
  ["varnish.vcl", /first_byte_timeout = (\d+)s/]
])(
  "in deploy/%s, the timeout %s is longer than the 50 s that a request can wait for a change",
  (file, timeout) => {
    const seconds = timeout.exec(readFileSync(join(deploy, file), "utf8"))?.[1]
    expect(Number(seconds)).toBeGreaterThan(50)
  }
)
