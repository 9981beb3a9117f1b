import * as Context from "effect/Context"
import { defaultRateLimits } from "../../../../application/Admission.ts"
import { defaultOutageMaxAge } from "../../../../application/cache/Outage.ts"

/** An environment variable, as the help and README.md describe it. */
export interface Variable {
  /** Markdown without links. The help removes the backticks. */
  readonly description: string
  /** The value of an unset or empty variable; undefined if the variable has no default. */
  readonly defaultValue?: string
  /** The document that README.md links to for details. */
  readonly document?: string
}

/**
 * The environment variables of the program, in the order of README.md. `src/runtime/config/Config.ts` checks their
 * values, except the value of `PROMPT_RETRIEVAL_WORKSPACE`, which `Flags.ts` reads.
 */
export const variables = {
  DATABASE_URL: {
    description:
      "URL of a PostgreSQL server, such as `postgres://user:password@host/database`; if unset, the embedded database is used",
    document: "docs/deployment.md#prepare-the-database"
  },
  DATABASE_FEED_URL: {
    description:
      "URL of a connection that bypasses poolers, for change notifications; if unset, `DATABASE_URL`",
    document: "docs/deployment.md#pgbouncer"
  },
  DATABASE_MAX_CONNECTIONS: {
    description: "Maximum number of connections to PostgreSQL, at least 6",
    defaultValue: "12",
    document: "docs/limits.md#postgresql"
  },
  DATA_DIR: { description: "Directory of the embedded database", defaultValue: ".data" },
  REDIS_URL: {
    description:
      "URL of a Redis server that shares the rate limits per key between processes; if unset, each process counts separately"
  },
  HOST: { description: "Address to listen on", defaultValue: "127.0.0.1" },
  PORT: { description: "Port to listen on; 0 selects a free port", defaultValue: "3000" },
  PUBLIC_URL: {
    description:
      "URL at which callers reach the service, such as `https://prompts.example.com`, for `/openapi.json` and redirects"
  },
  RATE_LIMIT_PER_KEY: {
    description: "Requests per minute, per key",
    defaultValue: String(defaultRateLimits.perKey)
  },
  RATE_LIMIT_PER_PROCESS: {
    description:
      "Requests per minute, per process, for all keys together; 5 keys at their default limit reach this default, so raise the limit for production",
    defaultValue: String(defaultRateLimits.perProcess)
  },
  MCP: {
    description: "`on` serves the Model Context Protocol at `/mcp`",
    defaultValue: "off",
    document: "docs/mcp.md"
  },
  METRICS_HOST: { description: "Address to serve metrics on; if unset, `HOST`" },
  METRICS_PORT: {
    description:
      "Port of `METRICS_HOST` that serves Prometheus text at `/metrics`; if unset, no metrics are served"
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    description: "URL of an OpenTelemetry collector for traces and metrics, such as `http://collector:4318`"
  },
  OUTAGE_MAX_AGE: {
    description:
      "How long known responses are served while the database is unreachable, such as `5m` or `5 minutes`; `0s` turns this off",
    defaultValue: `${defaultOutageMaxAge / 1_000} seconds`,
    document: "docs/operations.md#outages-of-the-database"
  },
  SHUTDOWN_GRACE: {
    description: "How long to keep accepting connections after SIGTERM, such as `5s`; at most 596 hours",
    defaultValue: "0 seconds"
  },
  PROMPT_RETRIEVAL_WORKSPACE: {
    description: "Id or unique name of the workspace of commands without `--workspace`"
  },
  PROMPT_RETRIEVAL_ACTOR: {
    description: "Name that the audit log records for changes; if unset, the user and the host of the process"
  },
  LOG_LEVEL: {
    description:
      "Lowest level that is logged: `All`, `Trace`, `Debug`, `Info`, `Warn`, `Error`, `Fatal` or `None`, in any letter case",
    defaultValue: "Info"
  },
  LOG_FORMAT: {
    description:
      "Format of the log lines on stderr, `json` or `pretty`; on a terminal, the default is `pretty`",
    defaultValue: "json"
  }
} as const satisfies Readonly<Record<string, Variable>>

export type VariableName = keyof typeof variables

/** The variable with the id or name of the workspace that a command uses if `--workspace` is not given. */
export const workspaceVariable: VariableName = "PROMPT_RETRIEVAL_WORKSPACE"

export const serveVariables = (Object.keys(variables) as ReadonlyArray<VariableName>).filter(
  (name) => name !== workspaceVariable
)

/** The variables of the commands that open the database. The help of the root command lists these variables. */
export const commonVariables: ReadonlyArray<VariableName> = [
  "DATABASE_URL",
  "DATABASE_MAX_CONNECTIONS",
  "DATA_DIR",
  workspaceVariable,
  "PROMPT_RETRIEVAL_ACTOR",
  "LOG_LEVEL",
  "LOG_FORMAT"
]

/** Annotates a command with the variables that its help lists. */
export const Variables = Context.Reference<ReadonlyArray<VariableName>>(
  "prompt-retrieval/adapters/inbound/cli/input/Variables",
  { defaultValue: () => [] }
)
