import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"

const deploy = join(import.meta.dirname, "../../../deploy")

/** The rules of all alerts, as a file for Prometheus. */
export const alertsFile = join(deploy, "prometheus-alerts.yml")

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly summary: string; readonly runbook_url: string }
}

export const readAlerts = (): ReadonlyArray<Alert> =>
  parse(readFileSync(alertsFile, "utf8")).groups.flatMap(
    ({ rules }: { readonly rules: ReadonlyArray<Alert> }) => rules
  )

interface Dashboard {
  readonly panels: ReadonlyArray<{ readonly targets?: ReadonlyArray<{ readonly expr: string }> }>
}

export const readDashboard = (): Dashboard =>
  JSON.parse(readFileSync(join(deploy, "grafana-dashboard.json"), "utf8"))

/** Returns the expressions of the dashboard for all jobs and instances, as Prometheus evaluates them. */
export const readDashboardExpressions = (): ReadonlyArray<string> =>
  readDashboard().panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr }) =>
      expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$(?:job|instance)/g, ".*")
    )
  )

/** Runs promtool and returns its output and its exit code, which is 0 if promtool found no problem. */
export const promtool = (args: ReadonlyArray<string>) => {
  const { status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8" })
  return { code: status, output: stdout + stderr }
}
