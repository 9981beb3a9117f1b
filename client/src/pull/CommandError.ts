/** An error that ends the command. The message goes to stderr on one line, without a stack trace. */
export class CommandError extends Error {
  /** 1 for a failure, 2 for an invalid command line. */
  readonly exitCode: 1 | 2
  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Makes the error of an invalid command line. The message names the flag, its rule and the remedy. */
export const toUsageError = (message: string): CommandError =>
  new CommandError(`${message}; see 'npx --no @prompt-retrieval/client pull --help'`, 2)

/** Replaces characters that can control a terminal: control characters except tabs, and invisible characters. */
export const printable = (text: string): string =>
  text.toWellFormed().replace(/[^\P{Cc}\t]|[\p{Cf}\p{Zl}\p{Zp}]/gu, "\ufffd")
