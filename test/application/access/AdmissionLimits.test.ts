import * as InProcess from "../../../src/adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { testAdmissionLimits } from "../../contracts/AdmissionLimits.ts"

testAdmissionLimits("memory", InProcess.layer)
