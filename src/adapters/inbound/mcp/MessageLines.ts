/** A line that is longer than the limit. */
export const tooLongLine = Symbol("tooLongLine")

const newline = 0x0a

/**
 * Splits bytes into lines, without their ends and without blank lines. A line of more than `maxBytes` becomes
 * `tooLongLine`; its bytes are dropped as they arrive.
 */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number
): AsyncGenerator<Uint8Array | typeof tooLongLine> {
  let parts: Array<Uint8Array> = []
  let bytes = 0
  const take = (): Uint8Array | typeof tooLongLine | undefined => {
    const line = bytes > maxBytes ? tooLongLine : Buffer.concat(parts)
    const isBlank = line !== tooLongLine && line.toString("latin1").trim() === ""
    parts = []
    bytes = 0
    return isBlank ? undefined : line
  }
  for await (const chunk of chunks) {
    let start = 0
    while (start < chunk.length) {
      const end = chunk.indexOf(newline, start)
      const part = chunk.subarray(start, end < 0 ? chunk.length : end)
      bytes += part.length
      if (bytes <= maxBytes) parts.push(part)
      else parts = []
      if (end < 0) break
      const line = take()
      if (line !== undefined) yield line
      start = end + 1
    }
  }
  const last = take()
  if (last !== undefined) yield last
}
