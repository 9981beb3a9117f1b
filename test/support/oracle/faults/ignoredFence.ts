import { Fence } from "../../../../src/adapters/outbound/postgres/replica/Fence.ts"
import { main } from "../../../../src/runtime/CommandLine.ts"

// A standby runs reads although it has not replayed the last reported change.
Fence.prototype.isPassedBy = () => true
main(process.argv.slice(2))
