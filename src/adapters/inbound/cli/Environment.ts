import * as Context from "effect/Context"
import { defaultRateLimits } from "../../../application/Admission.ts"

/** The variable that holds the workspace of commands without `--workspace`. */
export const workspaceVariable = "PROMPT_RETRIEVAL_WORKSPACE"

/** An environment variable that commands read, as help describes it. */
export interface Variable {
  readonly name: string
  readonly description: string
  /** The value if the variable is unset; undefined if there is none. */
  readonly defaultValue?: string
}

const DATABASE_URL: Variable = {
  name: "DATABASE_URL",
  description: "URL of a PostgreSQL server, or of several; if unset, the embedded database is used"
}
const DATABASE_MAX_CONNECTIONS: Variable = {
  name: "DATABASE_MAX_CONNECTIONS",
  description: "Maximum number of connections to PostgreSQL; at least 6",
  defaultValue: "12"
}
const DATA_DIR: Variable = {
  name: "DATA_DIR",
  description: "Directory of the embedded database",
  defaultValue: ".data"
}
const ACTOR: Variable = {
  name: "PROMPT_RETRIEVAL_ACTOR",
  description: "Name that the audit log records for changes; if unset, the user and the host of the process"
}
const LOG_LEVEL: Variable = {
  name: "LOG_LEVEL",
  description: "Lowest level that is logged",
  defaultValue: "Info"
}
const LOG_FORMAT: Variable = {
  name: "LOG_FORMAT",
  description: "Format of the log lines on stderr: json or pretty; on a terminal, the default is pretty",
  defaultValue: "json"
}

/** The variables that `serve` reads. */
export const serveVariables: ReadonlyArray<Variable> = [
  DATABASE_URL,
  {
    name: "DATABASE_FEED_URL",
    description: "URL of a connection that bypasses poolers, for change notifications; if unset, DATABASE_URL"
  },
  {
    name: "DATABASE_REPLICA_URL",
    description: "URL of one or several standbys that run reads, with their hosts separated by commas"
  },
  DATABASE_MAX_CONNECTIONS,
  DATA_DIR,
  {
    name: "REDIS_URL",
    description: "URL of a Redis server that shares the rate limits per key between processes"
  },
  { name: "HOST", description: "Address to listen on", defaultValue: "127.0.0.1" },
  { name: "PORT", description: "Port to listen on; 0 selects a free port", defaultValue: "3000" },
  {
    name: "PUBLIC_URL",
    description: "URL at which callers reach the service, for /openapi.json and redirects"
  },
  {
    name: "RATE_LIMIT_PER_KEY",
    description: "Requests per minute of one key",
    defaultValue: String(defaultRateLimits.perKey)
  },
  {
    name: "RATE_LIMIT_PER_PROCESS",
    description: "Requests per minute of all keys of a process together",
    defaultValue: String(defaultRateLimits.perProcess)
  },
  {
    name: "MCP",
    description: "on serves the Model Context Protocol at /mcp",
    defaultValue: "off"
  },
  { name: "METRICS_HOST", description: "Address to serve metrics on; if unset, HOST" },
  { name: "METRICS_PORT", description: "Port of METRICS_HOST that serves Prometheus text at /metrics" },
  {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    description: "URL of an OpenTelemetry collector for traces and metrics"
  },
  {
    name: "OUTAGE_MAX_AGE",
    description: "How long known responses are served while the database is unreachable; 0s turns this off",
    defaultValue: "300 seconds"
  },
  {
    name: "SHUTDOWN_GRACE",
    description: "How long to keep accepting connections after SIGTERM",
    defaultValue: "0 seconds"
  },
  ACTOR,
  LOG_LEVEL,
  LOG_FORMAT
]

/** The variables that every command with a database reads. */
export const commonVariables: ReadonlyArray<Variable> = [
  DATABASE_URL,
  DATABASE_MAX_CONNECTIONS,
  DATA_DIR,
  {
    name: workspaceVariable,
    description: "Id or unique name of the workspace of commands without --workspace"
  },
  ACTOR,
  LOG_LEVEL,
  LOG_FORMAT
]

/** Annotates a command with the variables that its help lists. */
export const Variables = Context.Reference<ReadonlyArray<Variable>>("prompt-retrieval/cli/Variables", {
  defaultValue: () => []
})
