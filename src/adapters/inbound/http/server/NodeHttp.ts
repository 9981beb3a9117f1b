/**
 * The values of `node:http` that this program uses. No module imports these values from `node:http`, because an import
 * statement reads every export. Reading the export `WebSocket` loads undici and HTTP/2, and takes 20 ms and 3 MiB at
 * every start.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http")
