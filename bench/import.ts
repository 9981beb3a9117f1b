/**
 * Imports an archive of 100,000 prompts into an empty PostgreSQL database through the command line, twice, and
 * prints the duration, the peak memory and the size of the file.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/import.ts [prompts]
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { freshDatabase, toDatabaseUrl } from "../test/support/postgres.ts"
import { writeArchive } from "./archive.ts"

const count = Number(process.argv[2] ?? 100_000)
const directory = mkdtempSync(join(tmpdir(), "bench-import-"))
const file = join(directory, "archive.json")

/** Returns the peak resident memory of a process on Linux, in bytes; 0 once the process has exited. */
const readPeakMemory = (pid: number): number => {
  try {
    return 1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0)
  } catch {
    return 0
  }
}

const toMiB = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(0)} MiB`

const run = async (url: string, name: string): Promise<void> => {
  const started = performance.now()
  const child = spawn(process.execPath, [join(import.meta.dirname, "../src/main.ts"), "import", file], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: "inherit"
  })
  let peak = 0
  const timer = setInterval(() => {
    peak = Math.max(peak, readPeakMemory(child.pid!))
  }, 50)
  const [code] = await once(child, "exit")
  clearInterval(timer)
  if (code !== 0) throw new Error(`the import exited with ${code}`)
  const seconds = (performance.now() - started) / 1000
  console.log(
    `${name}: ${seconds.toFixed(1)} s, at most ${toMiB(peak)} of memory for a file of ${toMiB(statSync(file).size)}`
  )
}

try {
  await writeArchive(file, count)
  await Effect.gen(function* () {
    const url = toDatabaseUrl(yield* freshDatabase)
    yield* Effect.promise(() => run(url, `${count} prompts into an empty database`))
    yield* Effect.promise(() => run(url, "the same archive again"))
  }).pipe(Effect.scoped, Effect.runPromise)
} finally {
  rmSync(directory, { recursive: true })
}
