import { readFileSync } from "node:fs"

/** The unit of the CPU times in /proc, in seconds. It is the same on every Linux system. */
const clockTick = 0.01

/** Returns the CPU time that a process has used so far, in seconds. Linux only. */
export const readCpuTime = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  // The fields follow the name of the program, which is in parentheses and may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const [user, system] = [fields[11], fields[12]]
  return (Number(user) + Number(system)) * clockTick
}
