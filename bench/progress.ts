/** Shows what a benchmark is doing: on a terminal in one line, otherwise in separate lines. */
export const showProgress = (text: string): void => {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`)
}
