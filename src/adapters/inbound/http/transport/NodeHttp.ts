/**
 * The values of `node:http` that this program uses. No module imports them from `node:http`: an import statement reads
 * every export, and reading `WebSocket` loads undici and HTTP/2, which takes 20 ms and 3 MiB at every start.
 */
export const { createServer, ServerResponse, STATUS_CODES } = process.getBuiltinModule("node:http")
